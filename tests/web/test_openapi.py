"""The description of the API: current, complete, and every answer fits it."""

import asyncio
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from tests.web.asgi import web_client
from tests.web.sample_home import fill

from holdfast.web.application import ROUTES
from holdfast.web.openapi import openapi

pytestmark = pytest.mark.timeout(300)
"""It opens many sessions, which takes its time on a slow machine."""
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def test_the_page_is_current() -> None:
    current = msgspec.json.format(msgspec.json.encode(openapi()), indent=1)
    assert PAGE.read_bytes() == current + b"\n", "run scripts/make_reference.py"


def test_every_route_is_described_once() -> None:
    described = {(method.upper(), path) for path, methods in openapi()["paths"].items() for method in methods}  # type: ignore[union-attr, union-attr]
    assert described == {(route.method, route.path) for route in ROUTES} | {
        ("POST", "/api/enter"),
        ("GET", "/api/stream"),
    }
    assert len(ROUTES) == len({(route.method, route.path) for route in ROUTES})


QUERIES = {
    "search": "?q=notes",
    "rewind": "?turn=0",
    "file": "?path=data.csv",
    "rule": "?scope=always&offer=1",
    "explain": "?call=%7B%22operation%22%3A%22world.list%22%7D",
}


def test_every_answer_fits_its_description(tmp_path: Path) -> None:
    document = openapi()

    async def ask() -> dict[str, bytes]:
        sample = await fill(tmp_path / "home", waiting=("a.txt",))
        answers: dict[str, bytes] = {}
        async with web_client(tmp_path / "home") as client:
            fork = (await client.post(f"/api/sessions/{sample.talk}/fork", {"turn": 1})).data["session"]
            [call] = (await client.get("/api/waiting")).data
            for route in ROUTES:
                if route.method != "GET" or route.gives is str or route.path == "/api/doctor":
                    continue
                part = route.path.rpartition("/")[2]
                session = {"merge": fork, "rule": call["session"]}.get(
                    part, sample.staged if part in ("changes", "file") else sample.talk
                )
                address = route.path.replace("{session}", session).replace("{policy}", "ask-always")
                address = address.replace("{id}", call["escalation"]["id"])
                answer = await client.get(address + QUERIES.get(part, ""))
                assert answer.status == 200, (address, answer)
                answers[route.path] = answer.body
        return answers

    for path, body in asyncio.run(ask()).items():
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]  # type: ignore[index, call-overload]
        jsonschema.validate(
            msgspec.json.decode(body),
            {**schema, "components": document["components"]},  # type: ignore[dict-item]
        )


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.method == "POST"])
def test_a_route_that_changes_something_needs_more_than_looking(path: str) -> None:
    [route] = [each for each in ROUTES if each.path == path and each.method == "POST"]
    assert route.right != "look"
    assert route.takes is not None
