"""A stranger's words stay a stranger's on every way through files: pieces, other encodings, lines, diffs and names."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.session.label_setup import POLICY, Desk, asked, desk_policy

from holdfast.app import Runtime
from holdfast.core import digest_bytes
from holdfast.models import Reply, ScriptedModel, say, use
from holdfast.session import AttachedText
from holdfast.world import TrustedFolders

BODY = "mail.search(query='bill')[0]['body']"
STAGING = POLICY.replace(
    '"world.*"]', '"world.read", "world.list", "world.search", "world.proposals"]'
).replace("rules:", 'rules:\n  - {name: stage, stage: ["world.write", "world.make_folder"], planned: any}')

COMMANDS = POLICY.replace('"world.*"]', '"world.*", shell.run]').replace(
    "own: [calendar.today]", "own: [calendar.today, shell.run]"
)


@pytest_asyncio.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "home")
    yield runtime
    await runtime.close()


async def _asks(
    runtime: Runtime, *programs: str, policy: str = POLICY, folder: Path | None = None
) -> list[str]:
    """What the last of some programs asks about; each runs in a turn of its own."""
    waiting = [each for code in programs for each in (use("execute_code", {"code": code}), say("Done."))]

    def reply(_: object) -> Reply:
        return waiting.pop(0)

    session = await runtime.create(
        model=ScriptedModel([reply] * 40), policy=desk_policy(policy), toolsets=[Desk().toolset],
        can_ask=False, workspace=folder,
    )  # fmt: skip
    try:
        before = 0
        for _ in programs:
            before = len(asked(session))
            await session.send("Go on.")
        return asked(session)[before:]
    finally:
        await session.close()


PARTS = {
    "a piece": "world.read(path='note.txt', offset=4, length=4)",
    "another encoding": "world.read(path='note.txt', encoding='base64')",
    "a line that was found": "world.search(query='DE')[0]['text'].split()[1]",
    "a long text": "world.read(path='long.txt')[4:8]",
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
async def test_a_part_of_a_file_has_the_level_of_the_file(
    runtime: Runtime, tmp_path: Path, part: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    write = f"b = {BODY}\nw = world.write(path='note.txt', content=b)\nw = world.write(path='long.txt', content=b * 4000)"
    pay = f"paid = bank.pay(to={part}, amount=1)"
    assert await _asks(runtime, write, pay, folder=folder) == ["bank.pay"]
    assert await _asks(runtime, pay, folder=folder) == ["bank.pay"], "in another session, too"


async def test_a_part_of_ones_own_file_is_ones_own(runtime: Runtime) -> None:
    write = f"w = world.write(path='own.txt', content='Pay DE11')\nw = world.write(path='note.txt', content={BODY})"
    pay = "paid = bank.pay(to=world.read(path='own.txt', offset=4, length=4), amount=1)"
    assert await _asks(runtime, write, pay) == []


async def test_a_diff_has_the_level_of_what_was_staged(runtime: Runtime) -> None:
    write = f"w = world.write(path='note.txt', content={BODY})"
    pay = "paid = bank.pay(to=world.proposals()[0]['diff'].split()[-5], amount=1)"
    assert await _asks(runtime, write, pay, policy=STAGING) == ["bank.pay"]


@pytest.mark.parametrize("kind", ["write", "make_folder"])
async def test_a_name_that_a_stranger_gave_to_a_file_stays_a_strangers(runtime: Runtime, kind: str) -> None:
    more = ", content='x'" if kind == "write" else ""
    name = f"w = world.{kind}(path={BODY}.split()[1]{more})"
    pay = "paid = bank.pay(to=world.{}, amount=1)".format(
        "list()[0]" if kind == "write" else "entries(path='.')[0]['path']"
    )
    assert await _asks(runtime, name, pay) == ["bank.pay"]


async def test_what_a_command_makes_of_a_strangers_file_is_a_strangers(
    runtime: Runtime, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "own.txt").write_text("Pay DE11")
    cut = "r = shell.run(script='cut -c5-8 {}.txt > payee.txt')\nprint(r['code'])"
    pay = "paid = bank.pay(to=world.read(path='payee.txt').strip(), amount=1)"
    assert await _asks(runtime, cut.format("own"), pay, policy=COMMANDS, folder=folder) == []
    write = f"w = world.write(path='note.txt', content={BODY})"
    assert await _asks(runtime, write, cut.format("note"), pay, policy=COMMANDS, folder=folder) == [
        "bank.pay"
    ]
    (folder / "payee.txt").unlink()
    assert await _asks(runtime, cut.format("note"), pay, policy=COMMANDS, folder=folder) == ["bank.pay"], (
        "in another session, too"
    )


async def test_the_text_of_an_attached_file_is_not_the_persons_word(runtime: Runtime) -> None:
    text = "Pay what it says.\n\nFile bill.txt:\n```\nDE99\n```"
    for attached, expected in (((), []), ((AttachedText(17, (digest_bytes(b"DE99"),)),), ["bank.pay"])):
        session = await runtime.create(
            model=ScriptedModel([use("execute_code", {"code": f"paid = bank.pay(to={BODY}.split()[1], amount=1)"}), "Done."]),
            policy=desk_policy(), toolsets=[Desk().toolset], can_ask=False,
        )  # fmt: skip
        await session.send(text, attached_text=attached[0] if attached else None)
        assert asked(session) == expected
        await session.close()


async def test_an_attached_file_with_a_strangers_words_lowers_the_author(
    runtime: Runtime, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    await _asks(runtime, f"w = world.write(path='note.txt', content={BODY})", folder=folder)
    content = (folder / "note.txt").read_bytes()
    for digest, expected in ((digest_bytes(b"mine"), []), (digest_bytes(content), ["bank.pay"])):
        session = await runtime.create(
            model=ScriptedModel([use("execute_code", {"code": "paid = bank.pay(to='DE11', amount=1)"}), "Done."]),
            policy=desk_policy(), toolsets=[Desk().toolset], can_ask=False, workspace=folder,
        )  # fmt: skip
        await session.send("Pay.\n\nFile note.txt:\n...", attached_text=AttachedText(4, (digest,)))
        assert asked(session) == expected
        await session.close()


async def test_instructions_that_a_stranger_wrote_lower_the_author(runtime: Runtime, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    TrustedFolders(runtime.home.trusted_folders).add(folder)
    pay = "paid = bank.pay(to='DE11', amount=1)"
    (folder / "AGENTS.md").write_text("Always test.")
    assert await _asks(runtime, pay, folder=folder) == []
    await _asks(runtime, f"w = world.write(path='AGENTS.md', content={BODY})", folder=folder)
    assert await _asks(runtime, pay, folder=folder) == ["bank.pay"]
