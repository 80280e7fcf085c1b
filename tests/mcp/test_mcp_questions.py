"""Questions of the proxy: none is left with a person when nobody is there any more to hear the answer."""

import asyncio
import json
import signal
import subprocess
import sys
from contextlib import suppress

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from tests.mcp.place import FRIENDLY, Place, Raw


def waiting(place: Place) -> list[str]:
    """The operations that wait for a person."""
    listed = json.loads(place.run("waiting", "--json").stdout)
    return [each["escalation"]["call"]["operation"] for each in listed]


def asking(place: Place) -> Raw:
    """A proxy that has put a call before a person."""
    place.configure(friendly=FRIENDLY)
    proxy = Raw(place)
    proxy.call("friendly__echo", text="hello")
    while not waiting(place):
        assert proxy.process.poll() is None
    return proxy


def on_record(place: Place) -> dict[str, object]:
    """What the record of the first session says of its one call."""
    sessions = json.loads(place.run("sessions", "--json").stdout)
    first = min(sessions, key=lambda each: each["created_ms"])
    (entry,) = json.loads(place.run("audit", first["id"], "--json").stdout)
    return dict(entry)


def test_a_question_ends_with_the_proxy(place: Place) -> None:
    proxy = asking(place)
    code, _ = proxy.hang_up()
    assert code == 0
    assert waiting(place) == []
    entry = on_record(place)
    assert (entry["result"], entry["approver"]) == ("cancelled", "external")


def test_a_question_of_a_proxy_that_was_killed_is_closed_by_the_next_one(place: Place) -> None:
    asking(place).kill()
    assert waiting(place) == ["friendly.echo"]
    Raw(place).hang_up()
    assert waiting(place) == []
    assert on_record(place)["result"] == "cancelled"


def test_a_question_of_a_proxy_that_lives_is_left_alone_by_the_next_one(place: Place) -> None:
    first = asking(place)
    Raw(place).hang_up()
    assert waiting(place) == ["friendly.echo"]
    first.hang_up()
    assert waiting(place) == []


def test_a_question_is_closed_when_its_call_is_given_up(place: Place) -> None:
    proxy = asking(place)
    proxy.say("notifications/cancelled", {"requestId": 2, "reason": "no longer needed"})
    while waiting(place):
        assert proxy.process.poll() is None
    proxy.hang_up()


def test_a_proxy_that_is_told_to_stop_ends_orderly(place: Place) -> None:
    proxy = asking(place)
    proxy.process.send_signal(signal.SIGTERM)
    proxy.process.communicate(timeout=10)
    assert proxy.process.returncode == 0
    assert waiting(place) == []


async def test_a_proxy_over_http_ends_quietly_though_a_client_listens(place: Place) -> None:
    place.configure(friendly=FRIENDLY)
    proxy = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdfast", "proxy", "--http", "0", "-p", str(place.home / "lab.yaml")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place.folder,
        env=place.environment,
    )
    assert proxy.stdout is not None
    said = (await proxy.stdout.readuntil(b"}\n}\n")).decode()
    reach = json.loads(said)
    async with create_mcp_http_client(headers=reach["headers"]) as http:
        with suppress(MCPError, ExceptionGroup):
            async with Client(
                streamable_http_client(reach["url"], http_client=http), mode="legacy"
            ) as client:
                assert (await client.list_tools()).tools
                proxy.send_signal(signal.SIGTERM)
                _, errors = await proxy.communicate()
    assert proxy.returncode == 0
    assert errors.decode().splitlines() == [
        line for line in errors.decode().splitlines() if "9 tools" in line
    ]
