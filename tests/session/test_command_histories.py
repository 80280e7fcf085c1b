"""Random histories of commands, edits, commits, rejections and rewinds end byte for byte as a plain copy would."""

import asyncio
import os
import random
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from holdfast.app import Runtime
from holdfast.commands import (
    CommandSandboxes,
    ScriptedProcess,
    ScriptedSandboxes,
    SystemSandboxes,
    probe_sandbox,
)
from holdfast.core import JsonObject, SystemClock, ToolMessage
from holdfast.models import Prompt, Reply, ScriptedModel, say, use_all
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.store import MemoryStore

NAMES = ("a", "b", "d/a", "d/e/b", "d", "x y", "ü")
POLICY = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "stage"})


LINKS = ("b", "d/l", "x y")
"""Names that become symlinks. Not a folder: what is below a symlink whose change is not committed cannot be staged."""


class File(NamedTuple):
    content: str
    is_executable: bool = False
    is_link: bool = False


Files = dict[str, File]


class Op(NamedTuple):
    """A step of a program: write a file, delete a path, make a file executable, or make a symlink."""

    verb: str
    path: str
    content: str = ""

    def apply(self, files: Files) -> None:
        """What a plain copy would have afterwards."""
        below = [each for each in files if each.startswith(f"{self.path}/")]
        match self.verb:
            case "write":
                above = [each for each in files if self.path.startswith(f"{each}/")]
                for each in (*below, *above):
                    del files[each]
                files[self.path] = File(self.content, self.path in files and files[self.path].is_executable)
            case "link":
                above = [each for each in files if self.path.startswith(f"{each}/")]
                for each in (*below, *above):
                    del files[each]
                files[self.path] = File(self.content, is_link=True)
            case "delete":
                for each in below:
                    del files[each]
                files.pop(self.path, None)
            case _:
                if self.path in files and not files[self.path].is_link:
                    files[self.path] = File(files[self.path].content, True)

    def script(self) -> str:
        """The same for a shell."""
        path = shlex.quote(self.path)
        match self.verb:
            case "write" | "link":
                above = [self.path[:place] for place, sign in enumerate(self.path) if sign == "/"]
                clear = [f"[ ! -f {shlex.quote(each)} ] || rm {shlex.quote(each)}" for each in above]
                make = [f"mkdir -p {shlex.quote(above[-1])}"] if above else []
                clear.append(f"[ ! -L {path} ] || rm {path}")
                if self.verb == "link":
                    write = f"rm -rf {path}; ln -s {shlex.quote(self.content)} {path}"
                else:
                    write = f"[ ! -d {path} ] || rm -r {path}; printf %s {shlex.quote(self.content)} > {path}"
                return "; ".join([*clear, *make, write])
            case "delete":
                return f"rm -rf {path}"
            case _:
                return f"[ ! -f {path} ] || [ -L {path} ] || chmod 755 {path}"


async def steps(process: ScriptedProcess) -> int:
    """The steps in a scripted sandbox."""
    for verb, path, content in msgspec.json.decode(process.stdin, type=list[tuple[str, str, str]]):
        files = {
            name: File(each.content.decode(), each.mode & 0o111 != 0) for name, each in process.files.items()
        }
        Op(verb, path, content).apply(files)
        for name in [name for name in process.files if name not in files]:
            del process.files[name]
        for name, file in files.items():
            process.write(name, file.content, mode=0o755 if file.is_executable else 0o644)
    return 0


class History:
    """A session and the plain copy that it is compared with."""

    def __init__(self, seed: int, root: Path, *, is_real: bool) -> None:
        self.random = random.Random(seed)
        self.root = root
        self.is_real = is_real
        self.calls: list[tuple[str, JsonObject]] = []
        self.base: Files = {"a": File("1"), "d/a": File("2"), "d/e/b": File("3", True)}
        self.view: Files = dict(self.base)
        self.points: list[tuple[Files, Files]] = [(dict(self.base), dict(self.view))]

    async def run(self, sandboxes: CommandSandboxes) -> None:
        project = self.root / "project"
        project.mkdir()
        for name, file in self.base.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(file.content)
            os.chmod(project / name, 0o755 if file.is_executable else 0o644)
        runtime = await Runtime.start(
            home=self.root / "home",
            settings=Settings(acts_with="tools"),
            servers=(),
            sandboxes=sandboxes,
            store=MemoryStore(clock=SystemClock()),
        )
        try:
            model = ScriptedModel([self.reply] * 1000)
            session = await runtime.create(model=model, workspace=project, policy=POLICY)
            for _ in range(self.random.randint(3, 7)):
                step = self.random.choice(
                    (self.turn, self.turn, self.turn, self.commit, self.reject, self.rewind)
                )
                await step(session)
                self.compare(session, project)
        finally:
            await runtime.close()

    def reply(self, prompt: Prompt) -> Reply:
        is_answered = isinstance(prompt.messages[-1], ToolMessage)
        return say("Done.") if is_answered else use_all(*self.calls)

    async def turn(self, session: Session) -> None:
        self.calls = []
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.4:
                path, content = self.random.choice(NAMES), str(self.random.randrange(1000))
                if _fits(self.view, self.base, path):
                    self.view[path] = File(content, path in self.view and self.view[path].is_executable)
                    self.calls.append(("world__write", {"path": path, "content": content}))
                continue
            ops = [self.op() for _ in range(self.random.randint(1, 3))]
            for op in ops:
                op.apply(self.view)
            if self.is_real:
                self.calls.append(("shell__run", {"script": "; ".join(op.script() for op in ops)}))
            else:
                self.calls.append(
                    ("shell__run", {"argv": ["steps"], "stdin": msgspec.json.encode(ops).decode()})
                )
        self.calls.append(("session__id", {}))
        await session.send("go")
        self.points.append((dict(self.base), dict(self.view)))

    def op(self) -> Op:
        verb = self.random.choice(("write", "write", "delete", "chmod", *(("link",) if self.is_real else ())))
        if verb == "link":
            return Op(verb, self.random.choice(LINKS), self.random.choice(("a", "e/b", "gone", ".")))
        return Op(verb, self.random.choice(NAMES), str(self.random.randrange(1000)))

    def staged(self) -> list[str]:
        return sorted(path for path in {*self.base, *self.view} if self.base.get(path) != self.view.get(path))

    async def commit(self, session: Session) -> None:
        if self.staged():
            await session.commit()
            self.base = dict(self.view)

    async def reject(self, session: Session) -> None:
        if self.staged():
            await session.reject()
            self.view = dict(self.base)

    async def rewind(self, session: Session) -> None:
        if not session.history() and len(self.points) == 1:
            return  # the first turn makes the first point
        turn = self.random.randrange(len(self.points))
        await session.rewind(turn)
        self.base, self.view = map(dict, self.points[turn])
        del self.points[turn + 1 :]

    def compare(self, session: Session, project: Path) -> None:
        assert _files(project) == self.base
        proposed = dict(self.base)
        copy = self.root / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        session.copy_proposed(copy)
        assert _files(copy) == self.view
        assert sorted(each.path for each in session.proposals()) == self.staged(), proposed


def _fits(files: Files, base: Files, path: str) -> bool:
    """Whether the agent's own tools can write a path: they follow symlinks, and leave folders alone."""
    if any(path in each and each[path].is_link for each in (files, base)):
        return False
    return not any(each.startswith(f"{path}/") or path.startswith(f"{each}/") for each in files)


def _files(root: Path) -> Files:
    return {
        path.relative_to(root).as_posix(): _file(path)
        for path in root.rglob("*")
        if path.is_file() or path.is_symlink()
    }


def _file(path: Path) -> File:
    if path.is_symlink():
        return File(os.readlink(path), is_link=True)
    return File(path.read_text(), path.stat().st_mode & 0o100 != 0)


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small files are slow on a disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="holdfast-histories-") as folder:
        yield Path(folder)


def run_histories(seeds: range, root: Path, *, is_real: bool) -> None:
    async def run() -> None:
        for seed in seeds:
            folder = root / str(seed)
            folder.mkdir()
            sandboxes: CommandSandboxes = (
                SystemSandboxes(root / "cache") if is_real else ScriptedSandboxes({"steps": steps})
            )
            try:
                await History(seed, folder, is_real=is_real).run(sandboxes)
            except BaseException as error:
                error.add_note(f"the history of seed {seed}")
                raise
            shutil.rmtree(folder)

    asyncio.run(run())


def test_histories_with_the_scripted_sandbox(memory_path: Path) -> None:
    run_histories(range(110), memory_path, is_real=False)


@pytest.mark.soak
def test_2_000_histories_with_the_scripted_sandbox(memory_path: Path) -> None:
    run_histories(range(110, 2_000), memory_path, is_real=False)


def test_histories_with_the_real_sandbox(tmp_path: Path) -> None:
    _check_stands(tmp_path)
    run_histories(range(10), tmp_path, is_real=True)


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(100))
def test_10_000_histories_with_the_real_sandbox(tmp_path: Path, hundred: int) -> None:
    _check_stands(tmp_path)
    run_histories(range(hundred * 100, hundred * 100 + 100), tmp_path, is_real=True)


def _check_stands(tmp_path: Path) -> None:
    if asyncio.run(probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
