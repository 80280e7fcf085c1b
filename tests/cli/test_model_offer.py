"""Without a key, a local model server is offered: at a terminal by a question, in a script by a hint."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.terminals import terminal
from tests.support.fork_server import forked_python
from tests.support.provider_stub import StubServer

MISSING_MODEL = 6


@pytest.fixture
async def ollama() -> AsyncIterator[StubServer]:
    async with StubServer(["Ahoy from this machine."], key="none") as server:
        yield server


def address(server: StubServer) -> str:
    return server.url.removeprefix("http://")


@pytest.mark.parametrize("words", [("say ahoy",), ("--plain", "say ahoy")])
async def test_at_a_terminal_a_yes_uses_the_local_model(
    ollama: StubServer, tmp_path: Path, words: tuple[str, ...]
) -> None:
    def sit() -> int:
        with terminal(*words, home=tmp_path, OLLAMA_HOST=address(ollama)) as user:
            assert user.wait_for("Ollama on this machine has server:"), user.seen
            assert user.wait_for("[y/N]"), user.seen
            user.type("y\r")
            assert user.wait_for("Ahoy from this machine."), user.seen
            return user.end()

    assert await asyncio.to_thread(sit) == 0
    assert len(ollama.requests) == 1


async def test_at_a_terminal_anything_else_is_a_no_and_nothing_is_sent(
    ollama: StubServer, tmp_path: Path
) -> None:
    def sit() -> int:
        with terminal("say ahoy", home=tmp_path, OLLAMA_HOST=address(ollama)) as user:
            assert user.wait_for("[y/N]"), user.seen
            user.type("\r")
            assert user.wait_for(f"holdfast -m server:{ollama.url}/v1#stub-model"), user.seen
            return user.end()

    assert await asyncio.to_thread(sit) == MISSING_MODEL
    assert ollama.requests == []


async def test_a_server_whose_model_was_declined_is_not_said_to_be_missing(
    ollama: StubServer, tmp_path: Path
) -> None:
    def sit() -> int:
        with terminal("--scratch", home=tmp_path, OLLAMA_HOST=address(ollama), COLUMNS="300") as user:
            assert user.wait_for("Use it for this session? [y/N]"), user.seen
            user.type("\r")
            assert user.wait_for("servers  Ollama on this machine has one: holdfast -m server:"), user.seen
            assert user.wait_for("Watch the demo? [y/N]"), user.seen
            user.type("\r")
            return user.end()

    assert await asyncio.to_thread(sit) == MISSING_MODEL


async def test_in_a_script_the_hint_is_the_exact_option_and_it_works(
    ollama: StubServer, tmp_path: Path
) -> None:
    environment = {
        "HOME": str(tmp_path),
        "HOLDFAST_HOME": str(tmp_path / "home"),
        "OLLAMA_HOST": address(ollama),
    }

    async def run(*words: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *forked_python("-m", "holdfast", *words),
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    code, _, err = await run("say ahoy")
    assert code == MISSING_MODEL
    option = err.partition("hint: ")[2].partition("holdfast ")[2].split()
    assert option == ["-m", f"server:{ollama.url}/v1#stub-model"]
    assert await run(*option, "say ahoy") == (0, "Ahoy from this machine.\n", "")
