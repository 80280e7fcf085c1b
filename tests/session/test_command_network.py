"""Connections are judged and recorded on behalf of the program that makes them, also if another command runs meanwhile."""

import asyncio
from pathlib import Path

from tests.session.test_private_registries import fetch

from holdfast.app import Runtime
from holdfast.commands import ScriptedProcess, ScriptedSandboxes
from holdfast.core.events import CommandStarted, HostJudged
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings

HOSTS = """\
policy: hosts
rules:
  - {name: commands, allow: "shell.*"}
  - {name: hosts, allow: net.connect, hosts: [known.example]}
"""


async def test_a_program_in_the_background_connects_on_its_own_behalf(tmp_path: Path) -> None:
    released, fetched = asyncio.Event(), asyncio.Event()

    async def server(process: ScriptedProcess) -> int:
        await released.wait()
        await fetch(process)
        fetched.set()
        return 0

    async def command(process: ScriptedProcess) -> int:
        released.set()
        await fetched.wait()
        return await fetch(process)

    (tmp_path / "hosts.yaml").write_text(HOSTS)
    (tmp_path / "project").mkdir()
    runtime = await Runtime.start(
        home=tmp_path / "home",
        settings=Settings(acts_with="tools"),
        servers=(),
        sandboxes=ScriptedSandboxes({"server": server, "command": command}),
    )
    try:
        model = ScriptedModel(
            [
                use("shell__start", {"argv": ["server", "http://background.example/"]}),
                use("shell__run", {"argv": ["command", "http://command.example/"]}),
                "Done.",
            ]
        )
        session = await runtime.create(
            model=model, workspace=tmp_path / "project", policy=str(tmp_path / "hosts.yaml")
        )
        await session.send("go")
        events = [entry.event for entry in session.recorded]
    finally:
        await runtime.close()
    calls = {event.argv[0]: event.call for event in events if isinstance(event, CommandStarted)}
    judged = {event.host: event.call for event in events if isinstance(event, HostJudged)}
    assert judged == {"background.example": calls["server"], "command.example": calls["command"]}
