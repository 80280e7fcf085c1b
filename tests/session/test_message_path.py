"""The path of a message from the command line to its effect: short, and through each package once."""

import asyncio
import io
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType

import msgspec
import pytest

from holdfast.cli import main
from holdfast.models import use
from holdfast.world import FolderWorld

MAX_FRAMES = 30
WRITE = use("execute_code", {"code": "world.write(path='a.txt', content='hi')"})


def frames_to_here() -> list[str]:
    """`package/module:function` of every frame of holdfast from the command's run() to the caller, across tasks."""
    inside: list[FrameType] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        inside.insert(0, frame)
        frame = frame.f_back
    waiting: list[FrameType] = []
    current = asyncio.current_task()
    for task in sorted(asyncio.all_tasks() - {current}, key=lambda task: task.get_name()):
        coroutine: object = task.get_coro()
        while (awaiting := getattr(coroutine, "cr_frame", None)) is not None:
            waiting.append(awaiting)
            coroutine = getattr(coroutine, "cr_await", None)
    return [name for name in map(_name, (*waiting, *inside)) if name and not name.startswith("cli/main")]


def _name(frame: FrameType) -> str:
    _, package, path = frame.f_code.co_filename.rpartition("/holdfast/")
    return f"{path}:{frame.f_code.co_name}" if package else ""


def packages(frames: list[str]) -> list[str]:
    """The packages on the way, each run of frames as one."""
    return [package for package, _ in groupby(frame.partition("/")[0] for frame in frames)]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], None]:
    """Runs `holdfast "write a file"` with a scripted model."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    Path("script.json").write_bytes(msgspec.json.encode([WRITE, "Done."]))
    Path("allow.yaml").write_text("policy: writes\nrules:\n  - {name: all, allow: 'world.*'}\n")
    options = ["-m", "scripted:script.json", "-p", "allow.yaml", "-w", "work", "--trust"]

    def run() -> None:
        assert main([*options, "write a file"]) == 0, capsys.readouterr().err
        assert Path("work/a.txt").read_text() == "hi"

    return run


def test_a_write_is_at_most_thirty_frames_from_the_command(
    command: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    write = FolderWorld.write

    def traced(self: FolderWorld, *arguments: object, **options: object) -> object:
        seen.append(frames_to_here())
        return write(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderWorld, "write", traced)
    command()
    [frames] = seen
    assert len(frames) + 1 <= MAX_FRAMES, "\n".join(frames)
    # The one step upward: the guest calls what agent gave it.
    assert packages(frames) == ["cli", "session", "agent", "guests", "agent", "gate", "world"]


def test_a_session_is_built_through_app_and_session_once(
    command: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    init = FolderWorld.__init__

    def traced(self: FolderWorld, *arguments: object, **options: object) -> None:
        seen.append(packages(frames_to_here()))
        init(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderWorld, "__init__", traced)
    command()
    assert ["cli", "app", "session"] in seen
    assert all(len(each) == len(set(each)) for each in seen), seen
