"""Guests: untrusted code and the engines that run it, behind one contract. Engines load when a guest first runs."""

from holdfast.guests.contract import Capabilities, Engine, Guest, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.seal import Seal

__all__ = ["Capabilities", "Engine", "Guest", "GuestLimits", "OnCall", "Run", "RunRequest", "Seal"]
