"""Who puts an escalation before a person."""

from collections.abc import Awaitable, Callable

from holdfast.core import Escalation, Response

Approver = Callable[[Escalation], Awaitable[Response | None]]
"""Asks about one escalation. None means that this one has nothing to say; others may still answer."""
