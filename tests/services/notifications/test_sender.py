"""The sender: in the background, in order, bounded, and nothing lost silently."""

import asyncio
import time
from pathlib import Path

import msgspec
from tests.support.http_standin import http_standin

from holdfast.core import SystemClock
from holdfast.services import NotificationSender, read_failures, sample_notification
from holdfast.services.notifications.sender import QUEUE_SIZE, failures_path
from holdfast.session import NotifyTarget, NotifyWebhook
from holdfast.store import Home


def sender_for(home: Path, **targets: NotifyTarget) -> NotificationSender:
    return NotificationSender(
        targets, home=Home(home), environ={}, clock=SystemClock(), backoff_seconds=0.001
    )


async def test_what_fails_is_sent_again_with_the_same_id_and_in_order(tmp_path: Path) -> None:
    async with http_standin() as server:
        server.answers = [(500, {}), (503, {}), (200, {})]
        sender = sender_for(tmp_path, hook=NotifyWebhook(url=server.url))
        for id in ("first", "second"):
            sender.post(msgspec.structs.replace(sample_notification(), id=id))
        await server.received(4)
        await sender.close()
    assert [each.headers["idempotency-key"] for each in server.requests] == ["first"] * 3 + ["second"]
    assert read_failures(Home(tmp_path)) == ()


async def test_what_cannot_be_sent_is_recorded_without_its_words(tmp_path: Path) -> None:
    async with http_standin() as server:
        server.answers = [(403, {})]
        sender = sender_for(tmp_path, hook=NotifyWebhook(url=server.url, private=True))
        sender.post(sample_notification())
        await server.received(1)
        await sender.close()
    [failed] = read_failures(Home(tmp_path))
    assert (failed.target, failed.topic, failed.reason) == ("hook", "finished", "the server answered 403")
    assert failures_path(Home(tmp_path)).stat().st_mode & 0o777 == 0o600
    assert b"private" not in failures_path(Home(tmp_path)).read_bytes()


async def test_a_silent_target_holds_up_neither_the_caller_nor_another_target(tmp_path: Path) -> None:
    async with http_standin() as silent, http_standin() as server:
        silent.is_silent = True
        sender = sender_for(
            tmp_path, silent=NotifyWebhook(url=silent.url), hook=NotifyWebhook(url=server.url)
        )
        sender.post(sample_notification())
        await server.received(1)
        await silent.received(1)
        for _ in range(QUEUE_SIZE + 5):
            sender.post(sample_notification(), only="silent")
        started = time.monotonic()
        await sender.close(seconds=0.05)
        assert time.monotonic() - started < 30
    reasons = [each.reason for each in read_failures(Home(tmp_path))]
    assert reasons.count("more than 100 notifications wait to be sent") == 5
    assert reasons.count("Holdfast ended before it could be sent") == QUEUE_SIZE + 1


async def test_a_target_gets_only_its_topics(tmp_path: Path) -> None:
    async with http_standin() as server:
        sender = sender_for(tmp_path, hook=NotifyWebhook(url=server.url, topics=("waits",)))
        sender.post(sample_notification())
        sender.post(msgspec.structs.replace(sample_notification(), topic="waits", id="w"))
        await server.received(1)
        await sender.close()
    assert [each.headers["idempotency-key"] for each in server.requests] == ["w"]


async def test_closing_without_notifications_does_nothing(tmp_path: Path) -> None:
    await sender_for(tmp_path, hook=NotifyWebhook(url="http://127.0.0.1:1/")).close()
    assert not failures_path(Home(tmp_path)).exists()
    assert len(asyncio.all_tasks()) == 1
