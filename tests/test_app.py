"""A whole runtime over a real home: what it hands out itself is written nowhere."""

from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.models import ScriptedModel, say
from holdfast.session import Settings


async def test_a_key_that_we_know_is_in_no_file_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "sk-canary-2f8d1c0b9e7a"
    monkeypatch.setenv("ANTHROPIC_API_KEY", canary)
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings())
    session = await runtime.create(model=ScriptedModel([say(f"the key is {canary}")]))
    await session.send(f"is it {canary}?")
    await session.execute(f"print('{canary}')\nopen('a.txt', 'w').write('plain')")
    await runtime.close()
    holding = [
        path.relative_to(tmp_path)
        for path in tmp_path.rglob("*")
        if path.is_file() and canary.encode() in path.read_bytes()
    ]
    assert holding == []
