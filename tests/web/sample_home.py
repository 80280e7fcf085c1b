"""A home with sessions in every state, made through the public runtime: a talk, staged changes, and calls that wait."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
from tests.store.sample_events import ended, opened, replied, said

from holdfast.app import Runtime
from holdfast.core import Response
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings
from holdfast.store import Home, Store
from holdfast.teams import Pair


@dataclass(frozen=True, slots=True)
class SampleHome:
    """The sessions of the home."""

    talk: str
    staged: str
    waiting: tuple[str, ...]


async def fill(
    home: Path, *, waiting: tuple[str, ...] = ("by-key.txt", "by-number.txt", "stays.txt")
) -> SampleHome:
    """Fill a home."""
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        talk = await runtime.create(
            name="tidy-notes",
            policy="ask-always",
            model=ScriptedModel(
                [
                    use(
                        "execute_code",
                        {"code": "print(1 + 1)\nopen('notes.txt', 'w').write('milk')"},
                        text="Let me see.",
                    ),
                    "I put the list in order.\n\n- bread\n- milk",
                ]
            ),
        )

        async def deny(_: object) -> Response:
            return Response(verdict="deny", reason="leave it as it is")

        talk.approver = deny
        await talk.send("Tidy up my notes, please.")
        staged = await runtime.create(name="report", policy="project", needs_model=False)
        lines = "\\n".join(f"line {number}" for number in range(40))
        await staged.execute(
            f"open('report.md', 'w').write('# Report\\n{lines}\\n')\nopen('data.csv', 'w').write('a,b\\n1,2\\n')"
        )
        asked: list[str] = []
        shop = home.parent / "shop"
        shop.mkdir(exist_ok=True)
        for name in waiting:
            session = await runtime.create(workspace=shop, policy="ask-always", needs_model=False)
            await session.execute(f"open('{name}', 'w').write('one\\ntwo\\nthree\\n')")
            asked.append(session.id)
        await _talk_in_teams(runtime.store, runtime.home)
        return SampleHome(talk=talk.id, staged=staged.id, waiting=tuple(asked))
    finally:
        await runtime.close()


async def _talk_in_teams(store: Store, home: Home) -> None:
    """A roster of two teams, and some messages between them."""
    project = home.root.parent / "team-project"
    project.mkdir(exist_ok=True)
    file = home.root / "teams.yaml"
    file.write_text(
        f"teams:\n  backend: {{project: {project}, member: holdfast, description: the API}}\n"
        f"  web: {{project: {project}, member: holdfast, description: the pages}}\n"
    )
    folder = str(home.root / "teams" / "default")
    for receiver, messages in (("backend", 3), ("web", 1)):
        pair = Pair(sender="external", receiver=receiver)
        begin = msgspec.structs.replace(opened(folder=folder), description=str(pair))
        journal = await store.create(begin, session=pair.session_id(folder))
        for number in range(1, messages + 1):
            await journal.append(said(number, f"question {number}"), replied(number))
            if receiver == "backend":  # the other one is being answered
                await journal.append(ended(number))
        await journal.release()
