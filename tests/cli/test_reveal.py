"""A person reveals what is kept from the model: on the command line, and in the browser."""

import asyncio
import json
from pathlib import Path

from tests.cli.commands import holdfast
from tests.web.asgi import web_client

from holdfast.app import Runtime
from holdfast.core import SessionId
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings

POLICY = """
policy: hiding
labels: {workspace: stranger, show: own}
rules:
  - {name: all, allow: "world.*", planned: any}
"""
LOOK = use("execute_code", {"code": "print(open('mail.txt').read())"})


async def _talk(home: Path, policy: Path) -> SessionId:
    """A session whose model did not get to read two files."""
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        model = ScriptedModel([LOOK, "It says {{out_1_1}}.", LOOK, "The same."])
        session = await runtime.create(model=model, policy=str(policy), can_ask=False)
        session.workspace.write("mail.txt", b"Pay DE99 at once.")
        await session.send("Read it.")
        await session.send("Read it again.")
        return session.id
    finally:
        await runtime.close()


def test_what_is_kept_from_the_model_is_listed_and_revealed(tmp_path: Path) -> None:
    policy = tmp_path / "hiding.yaml"
    policy.write_text(POLICY)
    home = tmp_path / "holdfast"
    session = asyncio.run(_talk(home, policy))

    listed = holdfast("reveal", session, "--json", home=tmp_path)
    assert json.loads(listed.stdout) == {"out_1_1": "stranger", "out_2_1": "stranger"}, listed.stderr
    unknown = holdfast("reveal", session, "out_9_9", home=tmp_path)
    assert "there is no hidden output 'out_9_9'" in unknown.stderr
    done = holdfast("reveal", session, "out_1_1", home=tmp_path)
    assert "the model may read out_1_1" in done.stderr

    async def in_the_browser() -> list[tuple[str, str]]:
        async with web_client(home) as client:
            answer = await client.post(f"/api/sessions/{session}/reveal", {"output": "out_2_1"})
            assert answer.status == 200, answer.body
            again = await client.post(f"/api/sessions/{session}/reveal", {"output": "out_2_1"})
            assert again.status != 200
            items = (await client.get(f"/api/sessions/{session}/conversation")).data["items"]
            return [(each["title"], each["hidden"]) for each in items if each["kind"] == "note"]

    notes = asyncio.run(in_the_browser())
    assert ("kept from the model as out_2_1", "out_2_1") in notes
    assert ("out_2_1 was shown to the model by person", "") in notes
    left = holdfast("reveal", session, home=tmp_path)
    assert "nothing is kept from the model" in left.stderr
