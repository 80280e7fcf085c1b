"""The first minutes at a terminal: without a model, in one line of 80 columns, and coming back."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminals import TerminalUser, prepared, terminal
from tests.support.provider_stub import StubServer

from holdfast.cli.terminal.status_line import short_model

MISSING_MODEL = 6
NO_SERVERS = {"OLLAMA_HOST": "127.0.0.1:9"}


@pytest.mark.parametrize("answer", ["y\r", "\r"])
def test_without_a_model_the_user_sees_what_was_looked_for_and_is_offered_the_demo(
    tmp_path: Path, answer: str
) -> None:
    with terminal("--scratch", home=tmp_path, **NO_SERVERS) as user:
        assert user.wait_for("No model is configured yet.")
        assert user.wait_for("$ANTHROPIC_API_KEY, $OPENAI_API_KEY or $GEMINI_API_KEY")
        assert user.wait_for("none answers on this machine: Ollama")
        assert user.wait_for("Watch the demo? [y/N]")
        user.type(answer)
        if answer == "\r":
            assert user.wait_for("hint:")
            assert user.end() == MISSING_MODEL
        else:
            assert user.wait_for("Holdfast demo: one whole session")


def test_the_first_line_fits_into_80_columns(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Hello.")
    subprocess.run(["git", "init", "-q", "-b", "a-branch", tmp_path / "work"], check=True)
    with terminal(*words, home=tmp_path, COLUMNS="80") as user:
        assert user.wait_for("/help lists commands")
    first = next(line for line in user.seen.splitlines() if "policy asking.yaml" in line)
    shown = re.sub(r"\x1b\[[?\d]*[a-z]", "", first)
    assert shown.startswith("~/work (a-branch) · policy asking.yaml · scripted · python, ")
    assert len(shown) <= 80


def test_a_resumed_chat_shows_the_last_exchange(tmp_path: Path) -> None:
    words = prepared(tmp_path, "First line.\n\nSecond line.\n\nThird.\n\nFourth.\n\nFifth.")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help lists commands")
        say(user, "what is it?", "Fifth.")
        assert user.end("\x04") == 0
    with terminal("-r", last_session(user), home=tmp_path) as user:
        assert user.wait_for("ago: what is it?")
        assert user.wait_for("| First line.")
        assert user.wait_for("| Third.")
        assert user.wait_for("2 more lines")
    assert "Fourth." not in user.seen


async def test_model_lists_what_the_provider_offers_with_prices(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with StubServer(["Hello."]) as server:
        server.models = ("gpt-4o", "gpt-4o-mini", "unheard-of\u200b")

        def sit() -> str:
            words = ("-w", "work", "--trust", "-m", "openai:gpt-4o")
            variables = {"OPENAI_API_KEY": "stub-key", "OPENAI_BASE_URL": f"{server.url}/v1"}
            with terminal(*words, home=tmp_path, **variables) as user:
                assert user.wait_for("/help lists commands")
                say(user, "/model", "US dollars per million tokens")
                say(user, "/model mini", "model: openai:gpt-4o-mini")
                say(user, "/model gpt", "'gpt' fits several models")
                say(user, "/model gpt-4o", "model: openai:gpt-4o\r")
                say(user, "/model gpt-9", "'gpt-9' is not the name of a model")
                say(user, "hello", "Hello.")
                for _ in range(30):  # the count of tokens arrives after the text
                    user.type("/status\r")
                    if user.wait_for("context:  110 of 128.0k tokens (0%)", seconds=1):
                        break
                assert user.end("\x04") == 0
            return user.seen

        seen = await asyncio.to_thread(sit)
    assert "* openai:gpt-4o" in seen
    assert "$2.50 in, $10.00 out" in seen
    assert "openai:unheard-of<U+200B>" in seen
    assert "price unknown" in seen
    assert "context:  110 of 128.0k tokens (0%)" in seen
    assert "limits:   none" in seen
    assert "waiting:  nothing" in seen


def say(user: TerminalUser, line: str, expected: str) -> None:
    user.type(f"{line}\r")
    assert user.wait_for(expected), user.seen[-2000:]


def last_session(user: TerminalUser) -> str:
    return user.seen.rpartition("holdfast -r ")[2].split()[0].removesuffix("\x1b[0m")


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("scripted:/home/me/a/script.json", "scripted:script.json"),
        ("server:http://127.0.0.1:8080/v1#qwen3", "server:qwen3"),
        ("anthropic:claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("ollama:hf.co/org/model:Q4", "ollama:model:Q4"),
    ],
)
def test_a_model_is_shown_without_its_folder_and_its_address(model: str, short: str) -> None:
    assert short_model(model) == short
