"""Runs commands in-process, as a person types them, and keeps their output."""

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.cli import main


class Terminal:
    """Runs commands as a person would and keeps what they print."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        self.said = ""

    def __call__(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        ended = main(words)
        out, self.said = self._capsys.readouterr()
        assert ended == code, self.said
        return out

    async def beside(self, *words: str, code: int = 0) -> str:
        """The same in a thread, while the event loop of a live session keeps running."""
        return await asyncio.to_thread(self, *words, code=code)

    def script(self, *replies: object) -> str:
        """A scripted model with these replies."""
        path = self.home / "script.json"
        path.write_text(json.dumps(replies))
        return f"scripted:{path}"
