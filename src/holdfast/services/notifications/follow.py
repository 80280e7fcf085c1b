"""Notifications of one session, made from its events."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from holdfast.core import Escalation, EscalationId, Proposed, SessionId, SystemClock
from holdfast.core.events import (
    BudgetWarned,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    MessagePosted,
    RecordedEvent,
    SessionOpened,
    SessionRenamed,
    TurnEnded,
)
from holdfast.gate import session_link
from holdfast.services.notifications.notification import (
    Notification,
    budget_warned,
    call_waits,
    turn_ended,
)
from holdfast.services.notifications.sender import NotificationSender
from holdfast.session import LiveSessions, NotifySettings
from holdfast.store import Follower, Home


class SessionNotifications:
    """Follows the journal of a session and posts what a person wants to know.

    A call that is answered within `after_seconds` of a target is not reported to it, and neither is a shorter turn: the person who sits
    at the terminal knows already.
    """

    def __init__(
        self, id: SessionId, follow: Callable[[Follower], None], sender: NotificationSender, *, home: Home
    ) -> None:
        """`follow` calls a function with every past and future event of the session."""
        self._id = id
        self._name: str | None = None
        self._sender = sender
        self._home = home
        self._waiting: dict[EscalationId, Escalation] = {}
        self._timers: dict[EscalationId, list[tuple[str, asyncio.TimerHandle]]] = {}
        self._started_ms = 0
        self._is_past = True
        follow(self)
        self._is_past = False

    def __call__(self, entry: RecordedEvent) -> None:
        match entry.event:
            case SessionOpened(name=name) | SessionRenamed(name=name):
                self._name = name
            case MessagePosted() | CodePosted():
                self._started_ms = entry.at_ms
            case _ if self._is_past:
                pass
            case EscalationOpened(escalation=escalation):
                self._open(escalation)
            case EscalationAnswered(escalation=id) | EscalationExpired(escalation=id):
                self._answered(id)
            case BudgetWarned(dimension=dimension, spent=spent, limit=limit):
                self._post(budget_warned(self._id, self._name, dimension, spent, limit, entry.seq))
            case TurnEnded(turn=turn, outcome=outcome):
                proposals = len(outcome.proposals) if isinstance(outcome, Proposed) else 0
                notification = turn_ended(self._id, self._name, turn, outcome, proposals=proposals)
                if notification is not None:
                    self._post(notification, seconds=(entry.at_ms - self._started_ms) / 1000)
            case _:
                pass

    def close(self) -> None:
        """Report the calls that still wait: nobody at this process can answer them any more."""
        for id, timers in self._timers.items():
            for name, timer in timers:
                timer.cancel()
                self._remind(id, name)
        self._timers = {}

    def _open(self, escalation: Escalation) -> None:
        self._waiting[escalation.id] = escalation
        loop = asyncio.get_running_loop()
        self._timers[escalation.id] = [
            (name, loop.call_later(target.after_seconds, self._remind, escalation.id, name))
            for name, target in self._sender.targets.items()
            if "waits" in target.topics
        ]

    def _answered(self, id: EscalationId) -> None:
        self._waiting.pop(id, None)
        for _, timer in self._timers.pop(id, ()):
            timer.cancel()

    def _remind(self, id: EscalationId, target: str) -> None:
        escalation = self._waiting.get(id)
        timers = self._timers.get(id, [])
        self._timers[id] = [each for each in timers if each[0] != target]
        if escalation is not None:
            notification = call_waits(self._id, self._name, escalation, count=len(self._waiting))
            self._sender.post(self._linked(notification), only=target)

    def _post(self, notification: Notification, *, seconds: float | None = None) -> None:
        for name, target in self._sender.targets.items():
            if notification.topic in target.topics and (seconds is None or seconds >= target.after_seconds):
                self._sender.post(self._linked(notification), only=name)

    def _linked(self, notification: Notification) -> Notification:
        return msgspec.structs.replace(notification, link=session_link(self._home, notification.session))


class Notifications:
    """The notifications of every session that this process runs."""

    def __init__(self, sender: NotificationSender, *, home: Home) -> None:
        self._sender = sender
        self._home = home
        self._followers: list[SessionNotifications] = []

    def watch(self, id: SessionId, follow: Callable[[Follower], None]) -> None:
        """Notify about a session. `follow` calls a function with every past and future event of it."""
        if self._sender.targets:
            self._followers.append(SessionNotifications(id, follow, self._sender, home=self._home))

    async def close(self) -> None:
        """Report what still waits, and wait a moment for what is queued."""
        for follower in self._followers:
            follower.close()
        await self._sender.close()


@asynccontextmanager
async def notify_about(
    sessions: LiveSessions, settings: NotifySettings, *, home: Home
) -> AsyncIterator[Notifications]:
    """While the block runs, notify about every live session, and about those that are given to `watch`.

    Raises InvalidConfig for a target that can never work.
    """
    sender = NotificationSender(settings.targets, home=home, environ=os.environ, clock=SystemClock())
    notifications = Notifications(sender, home=home)
    sessions.on_open(lambda session: notifications.watch(session.id, session.follow))
    try:
        yield notifications
    finally:
        await notifications.close()
