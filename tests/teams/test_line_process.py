"""A program that speaks in lines: cases L5 to L8, L10 to L12 and L15 of pool and stream."""

import asyncio
import sys
from pathlib import Path

import pytest

from holdfast.core import JsonObject
from holdfast.teams import MemberFailed, MemberLost
from holdfast.teams.members.line_process import LineProcess, SilenceTimeout


class Program:
    """Python code as a program, and the lines it sent."""

    def __init__(self, process: LineProcess, lines: list[JsonObject]) -> None:
        self.process = process
        self.lines = lines


async def run(tmp_path: Path, code: str) -> Program:
    lines: list[JsonObject] = []
    process = await LineProcess.start(
        [sys.executable, "-c", f"import os, sys, time\nsay = lambda b: os.write(1, b)\n{code}"],
        folder=str(tmp_path),
        environment={"PATH": "/usr/bin:/bin"},
        on_line=lines.append,
    )
    return Program(process, lines)


async def test_l10_a_partial_line_waits_for_its_end(tmp_path: Path) -> None:
    code = 'say(b\'{"a":\'); sys.stdin.readline(); say(b"1}\\n")'
    program = await run(tmp_path, code)
    assert program.lines == []
    await program.process.write({})
    await program.process.wait()
    assert program.lines == [{"a": 1}]
    await program.process.stop()


async def test_l11_a_line_that_is_not_a_json_object_is_skipped_and_counted(tmp_path: Path) -> None:
    code = 'say(b"hello\\n[1]\\n\\n{\\"a\\": 1}\\n\\xff\\xfe\\n")'
    program = await run(tmp_path, code)
    await program.process.wait()
    assert (program.lines, program.process.skipped_lines) == ([{"a": 1}], 3)
    await program.process.stop()


async def test_l12_a_character_split_over_two_writes_is_decoded(tmp_path: Path) -> None:
    code = (
        'whole = \'{"a": "日本 ü 🪸"}\\n\'.encode()\n'
        "for n in range(len(whole)):\n    say(whole[n:n+1]); time.sleep(0.001)"
    )
    program = await run(tmp_path, code)
    await program.process.wait()
    assert program.lines == [{"a": "日本 ü 🪸"}]
    await program.process.stop()


async def test_l15_an_endless_line_terminates_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.members.line_process.MAX_LINE_BYTES", 1 << 20)
    program = await run(tmp_path, "while True: say(b'x' * 65536)")
    await program.process.wait()
    assert not program.process.is_running
    assert "more than 1 MiB" in program.process.exit_description
    await program.process.stop()


async def test_l5_the_end_of_the_program_fails_a_waiting_call_at_once(tmp_path: Path) -> None:
    program = await run(tmp_path, "sys.stdin.readline(); sys.exit('out of kelp')")
    silence = SilenceTimeout(program.process, name="parrot", silence_seconds=600)
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    await program.process.write({})
    with pytest.raises(MemberLost, match="parrot ended with code 1: out of kelp"):
        await silence.wait_for(waiting)
    await program.process.stop()


async def test_l6_a_silent_program_is_stopped_and_fails_the_waiting_call(tmp_path: Path) -> None:
    program = await run(tmp_path, "time.sleep(600)")
    silence = SilenceTimeout(program.process, name="parrot", silence_seconds=0.05)
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with pytest.raises(MemberLost, match=r"said nothing for 0\.05 seconds"):
        await silence.wait_for(waiting)
    assert not program.process.is_running
    await program.process.stop()


async def test_l7_a_finished_wait_leaves_no_timer_behind(tmp_path: Path) -> None:
    program = await run(tmp_path, "sys.stdin.readline(); say(b'{}\\n'); sys.stdin.read()")
    silence = SilenceTimeout(program.process, name="parrot", silence_seconds=0.05)
    refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    refused.set_exception(ValueError("busy"))
    with pytest.raises(ValueError, match="busy"):
        await silence.wait_for(refused)
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if "Event.wait" in repr(task)]
    assert program.process.is_running
    await program.process.stop()


async def test_l8_a_program_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MemberFailed):
        await LineProcess.start(
            ["x"], folder=str(tmp_path / "missing"), environment={}, on_line=lambda _: None
        )
    program = await LineProcess.start(
        ["/no/such/program"], folder=str(tmp_path), environment={}, on_line=lambda _: None
    )
    await program.wait()
    assert not program.is_running
    await program.stop()


@pytest.mark.parametrize("line", [b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a": "\xff"}'])
async def test_a_message_that_no_parser_takes_ends_the_program(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "line").write_bytes(line + b"\n")
    program = await run(tmp_path, "say(open('line', 'rb').read()); time.sleep(600)")
    await program.process.wait()
    assert "broken message" in program.process.exit_description
    await program.process.stop()
