"""The command line in this process, for tests that need no terminal: the same entry that the program has."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cli import main


class Done(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in an empty home, without keys."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "holdfast"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in (
        "HOLDFAST_MODEL",
        "HOLDFAST_POLICY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> Done:
        capfd.readouterr()
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        return Done(code, *capfd.readouterr())

    return command
