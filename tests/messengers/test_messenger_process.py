"""`holdfast messenger run` as a user starts it, killed in the middle of a turn."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.terminals import DELETE, prepared
from tests.support.telegram_standin import TOKEN, TelegramStandIn, telegram_standin


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "holdfast", "messenger", "run"),
        cwd=home,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "HOLDFAST_HOME": str(home / "holdfast"),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "BOT_TOKEN": TOKEN,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def configure(home: Path, telegram: TelegramStandIn) -> None:
    (home / "holdfast").mkdir(mode=0o700)
    (home / "holdfast" / "config.toml").write_text(
        "[messengers.bot]\n"
        'kind = "telegram"\n'
        'token = "${BOT_TOKEN}"\n'
        f'base_url = "{telegram.http.url}"\n'
        'members = { "7" = "anna" }\n'
        f'workspace = "{home / "work"}"\n'
        f'policy = "{home / "asking.yaml"}"\n'
        f'model = "scripted:{home / "script.json"}"\n'
    )


async def test_a_killed_process_loses_no_message_and_asks_again(tmp_path: Path) -> None:
    prepared(tmp_path, DELETE, "Gone.", "Next.")
    async with telegram_standin() as telegram:
        configure(tmp_path, telegram)
        async with served(tmp_path) as process:
            telegram.write("remove it")
            await telegram.question("delete")
            telegram.write("and then?")
            await telegram.until(lambda it: not it.updates)  # confirmed, so it is on disk
            process.send_signal(signal.SIGKILL)
            await process.wait()
        telegram.sent.clear()
        async with served(tmp_path) as process:
            question, buttons = await telegram.question("delete")
            telegram.press(buttons["Approve once"], question)
            await telegram.until(lambda it: "Next." in it.texts())
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    assert telegram.texts().count("Gone.") == 1
    assert not (tmp_path / "work" / "a.txt").exists()
    assert TOKEN not in "".join(p.read_text(errors="replace") for p in (tmp_path / "holdfast").rglob("*.log"))
