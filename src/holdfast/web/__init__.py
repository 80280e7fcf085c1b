"""The web interface: an inbox for everything that waits, and the record of all sessions, for browsers on this machine."""

from holdfast.web.serve import DEFAULT_PORT, RunningServer, serve_web

__all__ = ["DEFAULT_PORT", "RunningServer", "serve_web"]
