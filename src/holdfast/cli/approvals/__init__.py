"""Approvals: at the terminal, in advance with --yes-to, and from another terminal."""
