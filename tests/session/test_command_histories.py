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
        """The same for a shell, which starts a program only where there is something to do: thousands of them take minutes."""
        path = shlex.quote(self.path)
        remove = f"if [ -e {path} ] || [ -L {path} ]; then rm -rf {path}; fi"
        match self.verb:
            case "write" | "link":
                above = [self.path[:place] for place, sign in enumerate(self.path) if sign == "/"]
                clear = [f"[ ! -f {shlex.quote(each)} ] || rm {shlex.quote(each)}" for each in above]
                folder = shlex.quote(above[-1]) if above else "."
                make = [f"[ -d {folder} ] || mkdir -p {folder}"]
                if self.verb == "link":
                    write = f"{remove}; ln -s {shlex.quote(self.content)} {path}"
                else:
                    clear.append(f"[ ! -L {path} ] || rm {path}")
                    write = f"[ ! -d {path} ] || rm -r {path}; printf %s {shlex.quote(self.content)} > {path}"
                return "; ".join([*clear, *make, write])
            case "delete":
                return remove
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


PER_SESSION = 10
"""Histories that share a session: each starts where the one before ended, and rewinds no further than its own start."""


class Histories:
    """A session and the plain copy that it is compared with."""

    def __init__(self, root: Path, *, is_real: bool) -> None:
        self.random = random.Random()
        self.servers = random.Random()
        self.root = root
        self.is_real = is_real
        self.calls: list[tuple[str, JsonObject]] = []
        self.base: Files = {"a": File("1"), "d/a": File("2"), "d/e/b": File("3", True)}
        self.view: Files = dict(self.base)
        self.points: list[tuple[Files, Files]] = [(dict(self.base), dict(self.view))]
        self.first_point = 0
        self.has_servers = False
        """In every second session programs run in the background, until a rewind stops them."""

    async def run(self, seeds: range, sandboxes: CommandSandboxes) -> None:
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
            for seed in seeds:
                try:
                    await self.play(seed, session, project)
                except BaseException as error:
                    error.add_note(f"the history of seed {seed}, in the session of {seeds}")
                    raise
        finally:
            await runtime.close()

    async def play(self, seed: int, session: Session, project: Path) -> None:
        self.random.seed(seed)
        self.servers.seed(seed)
        self.has_servers = self.is_real and seed // PER_SESSION % 2 == 1
        self.first_point = len(self.points) - 1
        for _ in range(self.random.randint(3, 7)):
            step = self.random.choice(
                (self.turn, self.turn, self.turn, self.commit, self.reject, self.rewind)
            )
            await step(session)
            self.compare(session, project)

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
                self.calls.append(
                    ("shell__run", {"argv": ["sh", "-c", "; ".join(op.script() for op in ops)]})
                )
            else:
                self.calls.append(
                    ("shell__run", {"argv": ["steps"], "stdin": msgspec.json.encode(ops).decode()})
                )
        if self.has_servers and self.servers.random() < 0.4:
            self.calls.insert(0, ("shell__start", {"argv": ["sleep", "600"]}))
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
        turn = self.random.randrange(self.first_point, len(self.points))
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
    found: Files = {}
    folders = [""]
    for folder in folders:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    found[folder + entry.name] = File(os.readlink(entry.path), is_link=True)
                elif entry.is_dir():
                    folders.append(f"{folder}{entry.name}/")
                else:
                    with open(entry.path, encoding="utf-8") as file:
                        found[folder + entry.name] = File(file.read(), entry.stat().st_mode & 0o100 != 0)
    return found


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
        for first in range(seeds.start, seeds.stop, PER_SESSION):
            folder = root / str(first)
            folder.mkdir()
            sandboxes: CommandSandboxes = (
                SystemSandboxes(root / "cache") if is_real else ScriptedSandboxes({"steps": steps})
            )
            shared = range(first, min(first + PER_SESSION, seeds.stop))
            await Histories(folder, is_real=is_real).run(shared, sandboxes)
            shutil.rmtree(folder)

    asyncio.run(run())


def test_histories_with_the_scripted_sandbox(memory_path: Path) -> None:
    run_histories(range(110), memory_path, is_real=False)


@pytest.mark.soak
def test_2_000_histories_with_the_scripted_sandbox(memory_path: Path) -> None:
    run_histories(range(110, 2_000), memory_path, is_real=False)


def test_histories_with_the_real_sandbox(memory_path: Path) -> None:
    _check_stands(memory_path)
    run_histories(range(5, 15), memory_path, is_real=True)


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(100))
def test_10_000_histories_with_the_real_sandbox(memory_path: Path, hundred: int) -> None:
    _check_stands(memory_path)
    run_histories(range(hundred * 100, hundred * 100 + 100), memory_path, is_real=True)


def _check_stands(root: Path) -> None:
    if asyncio.run(probe_sandbox(root / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
