"""A program that speaks in lines: cases L5, L6, L8, L10, L11, L12 and L15 of pool and stream."""

import asyncio
import sys
from pathlib import Path

import pytest

from holdfast.core import JsonObject
from holdfast.teams import MemberFailed, MemberLost
from holdfast.teams.members.line_process import LineProcess, SilenceTimeout


class Program:
    """Python code as a program, and what it has said."""

    def __init__(self, process: LineProcess, said: list[JsonObject]) -> None:
        self.process = process
        self.said = said


async def run(tmp_path: Path, code: str) -> Program:
    said: list[JsonObject] = []
    process = await LineProcess.start(
        [sys.executable, "-c", f"import os, sys, time\nsay = lambda b: os.write(1, b)\n{code}"],
        folder=str(tmp_path),
        environment={"PATH": "/usr/bin:/bin"},
        on_line=said.append,
    )
    return Program(process, said)


async def test_l10_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    code = 'say(b\'{"a":\'); sys.stdin.readline(); say(b"1}\\n")'
    program = await run(tmp_path, code)
    assert program.said == []
    await program.process.write({})
    await program.process.finished()
    assert program.said == [{"a": 1}]
    await program.process.stop()


async def test_l11_a_line_that_is_no_json_object_is_left_out_and_counted(tmp_path: Path) -> None:
    code = 'say(b"hello\\n[1]\\n\\n{\\"a\\": 1}\\n\\xff\\xfe\\n")'
    program = await run(tmp_path, code)
    await program.process.finished()
    assert (program.said, program.process.strays) == ([{"a": 1}], 3)
    await program.process.stop()


async def test_l12_a_character_split_over_two_writes_stays_whole(tmp_path: Path) -> None:
    code = (
        'whole = \'{"a": "日本 ü 🪸"}\\n\'.encode()\n'
        "for place in range(len(whole)):\n    say(whole[place:place+1]); time.sleep(0.001)"
    )
    program = await run(tmp_path, code)
    await program.process.finished()
    assert program.said == [{"a": "日本 ü 🪸"}]
    await program.process.stop()


async def test_l15_a_line_without_end_is_cut_off_and_the_program_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.members.line_process.MAX_LINE_BYTES", 1 << 20)
    program = await run(tmp_path, "while True: say(b'x' * 65536)")
    await program.process.finished()
    assert not program.process.is_running
    assert "more than 1 MiB" in program.process.exit_description
    await program.process.stop()


async def test_l5_the_end_of_the_program_is_an_error_to_its_waiter_at_once(tmp_path: Path) -> None:
    program = await run(tmp_path, "sys.stdin.readline(); sys.exit('out of kelp')")
    patience = SilenceTimeout(program.process, name="parrot", silence_seconds=600)
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    await program.process.write({})
    with pytest.raises(MemberLost, match="parrot ended with code 1: out of kelp"):
        await patience.until(waiting)
    await program.process.stop()


async def test_l6_a_program_that_says_nothing_is_ended_and_its_waiter_told(tmp_path: Path) -> None:
    program = await run(tmp_path, "time.sleep(600)")
    patience = SilenceTimeout(program.process, name="parrot", silence_seconds=0.05)
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with pytest.raises(MemberLost, match=r"said nothing for 0\.05 seconds"):
        await patience.until(waiting)
    assert not program.process.is_running
    await program.process.stop()


async def test_l7_no_timer_of_an_ended_wait_ends_the_program_later(tmp_path: Path) -> None:
    program = await run(tmp_path, "sys.stdin.readline(); say(b'{}\\n'); sys.stdin.read()")
    patience = SilenceTimeout(program.process, name="parrot", silence_seconds=0.05)
    refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    refused.set_exception(ValueError("busy"))
    with pytest.raises(ValueError, match="busy"):
        await patience.until(refused)
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if "Event.wait" in repr(task)]
    assert program.process.is_running
    await program.process.stop()


async def test_l8_a_program_that_cannot_be_started_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(MemberFailed):
        await LineProcess.start(
            ["x"], folder=str(tmp_path / "missing"), environment={}, on_line=lambda _: None
        )
    program = await LineProcess.start(
        ["/no/such/program"], folder=str(tmp_path), environment={}, on_line=lambda _: None
    )
    await program.finished()
    assert not program.is_running
    await program.stop()
