"""Titles of sessions: the first words, or what a model calls the session if the person allows it."""

import json
import time
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, terminal


def titles(home: Path) -> list[str]:
    return [each.get("title", "") for each in json.loads(holdfast("sessions", "--json", home=home).stdout)]


def test_a_chat_asks_for_a_title_after_its_first_turn_if_the_person_allows_it(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Parser rewrite.", "Fine.")
    (tmp_path / "holdfast").mkdir(mode=0o700)
    (tmp_path / "holdfast" / "config.toml").write_text('titles = "model"\n')
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("hello\r")
        assert user.wait_for("Parser rewrite.")
        end = time.monotonic() + 60
        while titles(tmp_path) != ["Parser rewrite"] and time.monotonic() < end:
            user.read(0.1)
        assert user.end("\x04") == 0
    assert titles(tmp_path) == ["Parser rewrite"]
    assert "Parser rewrite" in holdfast("sessions", home=tmp_path).stdout


def test_without_permission_no_title_is_asked_for(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Answer."), home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("hello there\r")
        assert user.wait_for("Answer.")
        assert user.end("\x04") == 0
    assert titles(tmp_path) == [""]
    assert "hello there" in holdfast("sessions", home=tmp_path).stdout
