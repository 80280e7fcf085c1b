"""Notifications of one session, made from its events."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from holdfast.core import Escalation, EscalationId, SessionId, SystemClock
from holdfast.core.events import (
    BudgetWarned,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    MessagePosted,
    RecordedEvent,
    TurnEnded,
)
from holdfast.services.notifications.notification import (
    Notification,
    budget_warned,
    call_waits,
    turn_ended,
)
from holdfast.services.notifications.sender import NotificationSender
from holdfast.session import LiveSessions, NotifySettings, Session
from holdfast.store import Home

Link = Callable[[SessionId], str]


def no_link(_session: SessionId) -> str:
    """For a machine where no web page runs."""
    return ""


class SessionNotifications:
    """Follows a session and posts what a person wants to know.

    A call that is answered within `after_seconds` of a target is not reported to it, and neither is a shorter turn: the person who sits
    at the terminal knows already.
    """

    def __init__(self, session: Session, sender: NotificationSender, *, link: Link = no_link) -> None:
        self._session = session
        self._sender = sender
        self._link = link
        self._after = session.last_seq
        self._waiting: dict[EscalationId, Escalation] = {}
        self._timers: dict[EscalationId, list[tuple[str, asyncio.TimerHandle]]] = {}
        self._started_ms = 0
        session.follow(self)

    def __call__(self, entry: RecordedEvent) -> None:
        if entry.seq <= self._after:
            return
        match entry.event:
            case MessagePosted() | CodePosted():
                self._started_ms = entry.at_ms
            case EscalationOpened(escalation=escalation):
                self._open(escalation)
            case EscalationAnswered(escalation=id) | EscalationExpired(escalation=id):
                self._answered(id)
            case BudgetWarned(dimension=dimension, spent=spent, limit=limit):
                self._post(
                    budget_warned(
                        self._session.id, self._session.status.name, dimension, spent, limit, entry.seq
                    )
                )
            case TurnEnded(turn=turn, outcome=outcome):
                notification = turn_ended(
                    self._session.id,
                    self._session.status.name,
                    turn,
                    outcome,
                    proposals=len(self._session.proposals()),
                )
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
            notification = call_waits(
                self._session.id, self._session.status.name, escalation, count=len(self._waiting)
            )
            self._sender.post(self._linked(notification), only=target)

    def _post(self, notification: Notification, *, seconds: float | None = None) -> None:
        for name, target in self._sender.targets.items():
            if notification.topic in target.topics and (seconds is None or seconds >= target.after_seconds):
                self._sender.post(self._linked(notification), only=name)

    def _linked(self, notification: Notification) -> Notification:
        return msgspec.structs.replace(notification, link=self._link(notification.session))


@asynccontextmanager
async def notify_about(
    sessions: LiveSessions, settings: NotifySettings, *, home: Home, link: Link = no_link
) -> AsyncIterator[None]:
    """While the block runs, notify about every live session. Raises InvalidConfig for a target that can never work."""
    sender = NotificationSender(settings.targets, home=home, environ=os.environ, clock=SystemClock())
    followers: list[SessionNotifications] = []
    if sender.targets:
        sessions.on_open(lambda session: followers.append(SessionNotifications(session, sender, link=link)))
    try:
        yield
    finally:
        for follower in followers:
            follower.close()
        await sender.close()
