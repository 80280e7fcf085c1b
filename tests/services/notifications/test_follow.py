"""Notifications made from the events of a session."""

import json
from pathlib import Path

from tests.support.http_standin import http_standin

from holdfast.core import Limits, SystemClock
from holdfast.models import ScriptedReply, use
from holdfast.services import Notifications, NotificationSender
from holdfast.session import NotifyWebhook
from holdfast.store import Home
from holdfast.testing import memory_session


async def test_four_fifths_of_a_budget_are_notified_once(tmp_path: Path) -> None:
    replies: list[ScriptedReply] = [
        *(use("world__list", {"pattern": f"{number}*"}) for number in range(8)),
        "Done.",
    ]
    async with http_standin() as server, memory_session(replies, limits=Limits(calls=10)) as session:
        target = NotifyWebhook(url=server.url, topics=("budget",), after_seconds=0)
        sender = NotificationSender({"hook": target}, home=Home(tmp_path), environ={}, clock=SystemClock())
        notifications = Notifications(sender, home=Home(tmp_path))
        notifications.watch(session.id, session.follow)
        await session.send("Look around.")
        await notifications.close()
        [request] = server.requests
    assert json.loads(request.body)["title"] == "Holdfast: a budget is nearly spent"
    assert json.loads(request.body)["text"].endswith("has spent 8 of 10 calls")
