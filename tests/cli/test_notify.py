"""Notifications of real sessions, as a user sets them up."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, prepared
from tests.support.fork_server import forked_python
from tests.support.http_standin import HttpStandIn, http_standin

from holdfast.gate import WebAddress, published_address
from holdfast.store import Home


async def holdfast(home: Path, *words: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *forked_python("-m", "holdfast", *words),
        cwd=home, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"], "HOME": str(home), "HOLDFAST_HOME": str(home / "holdfast"),
            "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1",
        },
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def configure(home: Path, server: HttpStandIn, *more: str) -> None:
    lines = ["[notify.targets.hook]", 'kind = "webhook"', f'url = "{server.url}/hook"', *more]
    (home / "holdfast").mkdir(mode=0o700)
    (home / "holdfast" / "config.toml").write_text("\n".join(lines) + "\n")


async def test_a_call_that_waits_and_the_end_of_its_turn_are_notified(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    async with http_standin() as server:
        configure(tmp_path, server, "after_seconds = 0", 'topics = ["waits", "finished"]')
        code, _, errors = await holdfast(tmp_path, *words, "-n", "cleaning", "remove it")
        assert code == 5, errors
        [waits] = await server.received(1)
        _, listed, _ = await holdfast(tmp_path, "waiting", "--json")
        await holdfast(tmp_path, "approve", json.loads(listed)[0]["escalation"]["id"])
        code, _, errors = await holdfast(tmp_path, "-c", "-m", words[-1])
        assert code == 0, errors
        _, finished = await server.received(2)
    assert json.loads(waits.body)["text"] == "1 call waits for your approval in 'cleaning'"
    assert json.loads(finished.body)["title"] == "Holdfast: the agent has finished"
    assert b"a.txt" not in waits.body + finished.body
    assert b"Gone." not in finished.body


async def test_a_notification_links_to_the_page_where_one_runs(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    async with http_standin() as server:
        configure(tmp_path, server, 'topics = ["waits"]')
        with (tmp_path / "holdfast" / "config.toml").open("a") as config:
            config.write(f'[notify.targets.phone]\nkind = "ntfy"\nurl = "{server.url}/topic"\n')
        home = Home(tmp_path / "holdfast")
        with published_address(home, WebAddress(origin="http://127.0.0.1:1", since_ms=1)):
            await holdfast(tmp_path, *words, "remove it")
        await server.received(2)
    _, listed, _ = await holdfast(tmp_path, "waiting", "--json")
    [link] = {f"http://127.0.0.1:1/#/s/{each['session']}" for each in json.loads(listed)}
    by_path = {each.path: each for each in server.requests}
    assert json.loads(by_path["/hook"].body)["link"] == link
    assert by_path["/topic"].headers["click"] == link


async def test_a_private_target_sees_the_call(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    async with http_standin() as server:
        configure(tmp_path, server, "private = true", 'topics = ["waits"]')
        await holdfast(tmp_path, *words, "remove it")
        [waits] = await server.received(1)
    assert "delete" in json.loads(waits.body)["detail"]
    assert "a.txt" in json.loads(waits.body)["detail"]


async def test_a_short_turn_is_not_notified(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Done.")
    async with http_standin() as server:
        configure(tmp_path, server, "after_seconds = 3600")
        code, _, errors = await holdfast(tmp_path, *words, "be quick")
        assert code == 0, errors
    assert server.requests == []


async def test_a_target_that_fails_is_in_the_doctor_and_in_the_list(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE)
    async with http_standin() as server:
        server.answers = [(403, {}), (403, {})]
        configure(tmp_path, server)
        code, _, _ = await holdfast(tmp_path, *words, "remove it")
        assert code == 5
        await server.received(1)
        code, out, _ = await holdfast(tmp_path, "notify", "test", "hook")
        assert (code, out.strip()) == (1, "hook: the server answered 403")
        code, out, _ = await holdfast(tmp_path, "notify", "test", "--json")
    assert json.loads(out) == [{"name": "hook", "sent": True, "reason": ""}]
    _, out, _ = await holdfast(tmp_path, "notify")
    assert "hook: webhook, reports: waits, finished, failed, budget" in out
    assert "the server answered 403" in out
    _, out, _ = await holdfast(tmp_path, "doctor")
    assert "notify hook" in out
    assert "1 notification not sent in 7 days" in out


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['kind = "webhook"', 'url = "http://example.com/"'], "must be https"),
        (['kind = "webhook"', 'adress = "x"'], "adress"),
        (['kind = "pigeon"'], "pigeon"),
    ],
)
async def test_a_wrong_target_is_an_error_before_a_session_starts(
    tmp_path: Path, lines: list[str], expected: str
) -> None:
    (tmp_path / "holdfast").mkdir(mode=0o700)
    (tmp_path / "holdfast" / "config.toml").write_text("\n".join(["[notify.targets.it]", *lines]) + "\n")
    code, _, errors = await holdfast(tmp_path, *prepared(tmp_path, "Done."), "hello")
    assert code != 0
    assert expected in errors


async def test_the_old_keys_are_read_and_said_to_have_moved(tmp_path: Path) -> None:
    (tmp_path / "holdfast").mkdir(mode=0o700)
    (tmp_path / "holdfast" / "config.toml").write_text('notify = "bell"\nnotify_command = ["true"]\n')
    code, out, errors = await holdfast(tmp_path, "config")
    assert code == 0
    assert "notify is now called notify.terminal" in errors
    assert "bell" in out
