"""The sender: one bounded queue for each target, so that a slow target delays neither a turn nor another target.

What could not be sent is a line of `logs/notify-failures.jsonl`, which `holdfast doctor` reports.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from holdfast.core import Clock, Value, encode
from holdfast.services.notifications.deliver import DeliveryFailed, check_target, deliver
from holdfast.services.notifications.notification import Notification
from holdfast.session import NotifyTarget
from holdfast.store import Home, private_folder

QUEUE_SIZE = 100
ATTEMPTS = 5
BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
CLOSE_SECONDS = 5.0
MAX_FAILURE_BYTES = 200_000


class FailedNotification(Value):
    """A notification that did not arrive."""

    at_ms: int
    target: str
    topic: str
    session: str
    reason: str


class NotificationSender:
    """Sends notifications in the background. `post` never blocks and never raises."""

    def __init__(
        self,
        targets: Mapping[str, NotifyTarget],
        *,
        home: Home,
        environ: Mapping[str, str],
        clock: Clock,
        backoff_seconds: float = BACKOFF_SECONDS,
    ) -> None:
        """Raises InvalidConfig for a target that can never work."""
        for name, target in targets.items():
            check_target(name, target)
        self.targets = dict(targets)
        self._home = home
        self._environ = environ
        self._clock = clock
        self._backoff = backoff_seconds
        self._queues: dict[str, asyncio.Queue[Notification]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def post(self, notification: Notification, *, only: str | None = None) -> None:
        """Queue a notification for every target that wants its topic, or for one."""
        for name, target in self.targets.items():
            if name == only or (only is None and notification.topic in target.topics):
                try:
                    self._queue(name).put_nowait(notification)
                except asyncio.QueueFull:
                    self._fail(name, notification, f"more than {QUEUE_SIZE} notifications wait to be sent")

    async def close(self, *, seconds: float = CLOSE_SECONDS) -> None:
        """Wait a moment for what is queued, then give up on the rest and record it."""
        waiting = [asyncio.create_task(queue.join()) for queue in self._queues.values()]
        if waiting:
            _, unfinished = await asyncio.wait(waiting, timeout=seconds)
            for task in (*self._tasks, *unfinished):
                task.cancel()
            await asyncio.gather(*self._tasks, *unfinished, return_exceptions=True)
        for name, queue in self._queues.items():
            while not queue.empty():
                self._fail(name, queue.get_nowait(), "Holdfast ended before it could be sent")
        self._queues, self._tasks = {}, []

    def _queue(self, name: str) -> asyncio.Queue[Notification]:
        if name not in self._queues:
            self._queues[name] = asyncio.Queue(QUEUE_SIZE)
            self._tasks.append(asyncio.create_task(self._send_all(name)))
        return self._queues[name]

    async def _send_all(self, name: str) -> None:
        queue = self._queues[name]
        while True:
            notification = await queue.get()
            try:
                await self._send(name, notification)
            except asyncio.CancelledError:
                self._fail(name, notification, "Holdfast ended before it could be sent")
                raise
            finally:
                queue.task_done()

    async def _send(self, name: str, notification: Notification) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await deliver(self.targets[name], notification, self._environ, now_ms=self._clock.now_ms())
            except DeliveryFailed as error:
                if error.is_final or attempt == ATTEMPTS:
                    self._fail(name, notification, str(error))
                    return
                delay = max(self._backoff * 2 ** (attempt - 1), error.retry_after)
                await asyncio.sleep(min(delay, MAX_BACKOFF_SECONDS))
            else:
                return

    def _fail(self, name: str, notification: Notification, reason: str) -> None:
        failed = FailedNotification(
            at_ms=self._clock.now_ms(),
            target=name,
            topic=notification.topic,
            session=notification.session,
            reason=reason[:300],
        )
        with contextlib.suppress(OSError):  # a record of a failure must not cause another
            _append(failures_path(self._home), encode(failed) + b"\n")


def failures_path(home: Home) -> Path:
    """The file of notifications that did not arrive."""
    return home.log.with_name("notify-failures.jsonl")


def read_failures(home: Home) -> tuple[FailedNotification, ...]:
    """The notifications that did not arrive, oldest first."""
    try:
        lines = failures_path(home).read_bytes()[-MAX_FAILURE_BYTES:].splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(line, type=FailedNotification))
    return tuple(found)


def _append(path: Path, line: bytes) -> None:
    private_folder(path.parent)
    if path.exists() and path.stat().st_size > MAX_FAILURE_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
