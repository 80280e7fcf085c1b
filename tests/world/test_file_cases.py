"""Numbered cases of the files of a session, for the host and for its guest."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import holdfast.workspace as workspace
from holdfast.app import Runtime
from holdfast.core import FakeClock, Ok
from holdfast.core.errors import PathRefused
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.store import Home

BINARY = bytes(range(256))


class Box:
    """The workspace of one session, with a few files in it and a link that leads out."""

    def __init__(self, home: Home, outside: Path) -> None:
        self.home = home
        self.folder = workspace.create("box", home=home).path
        for path, content in {"a.json": "{}", "d/b.py": "1", "d/e/c.py": "2", "empty": ""}.items():
            self.write(path, content)
        (self.folder / "lnk").symlink_to(outside)
        (self.folder / "file-lnk").symlink_to(outside / "passwd")

    def read(self, path: str) -> bytes:
        return workspace.read("box", path, home=self.home)

    def write(self, path: str, content: bytes | str = "x", *, overwrite: bool = True) -> bytes:
        workspace.write("box", path, content, overwrite=overwrite, home=self.home)
        return self.read(path)

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        return workspace.list_files("box", pattern, home=self.home)

    def remove(self, path: str, *, recursive: bool = False) -> tuple[str, ...]:
        workspace.remove("box", path, recursive=recursive, home=self.home)
        return self.list()

    def delete_twice(self) -> None:
        workspace.delete("box", home=self.home)
        workspace.delete("box", home=self.home)


ALL = ("a.json", "d/b.py", "d/e/c.py", "empty")
HOST: dict[str, tuple[Callable[[Box], object], object]] = {
    "F1": (lambda box: box.write("data.txt"), b"x"),
    "F2": (lambda box: box.write("x/y/f.txt"), b"x"),
    "F3": (lambda box: (box.write("./x"), box.read("x"))[1], b"x"),
    "F4": (lambda box: (box.write("a/../b"), box.read("b"))[1], b"x"),
    "F5": (lambda box: box.write("../x"), PathRefused),
    "F6": (lambda box: box.write("a/../../x"), PathRefused),
    "F7": (lambda box: box.read("/etc/passwd"), PathRefused),
    "F8": (lambda box: box.write("a\0b"), PathRefused),
    "F9": (lambda box: box.write("..\\x"), PathRefused),
    "F10": (lambda box: box.write("C:\\x"), PathRefused),
    "F11 write": (lambda box: box.write("."), PathRefused),
    "F11 write nothing": (lambda box: box.write(""), PathRefused),
    "F11 delete": (lambda box: box.remove(".", recursive=True), PathRefused),
    "F11 delete nothing": (lambda box: box.remove("", recursive=True), PathRefused),
    "F12": (lambda box: box.read("lnk/passwd"), PathRefused),
    "F13": (lambda box: "file-lnk" in box.list(), False),
    "F14": (lambda box: box.read("missing"), FileNotFoundError),
    "F15": (lambda box: box.read("d"), IsADirectoryError),
    "F16": (lambda box: box.write("t", "ü"), "ü".encode()),
    "F17": (lambda box: box.write("p/q/r"), b"x"),
    "F18": (lambda box: box.write("a.json", "other", overwrite=False), FileExistsError),
    "F19": (lambda box: box.write("empty", "other", overwrite=False), FileExistsError),
    "F20": (lambda box: box.remove("d"), OSError),
    "F21": (lambda box: box.remove("d", recursive=True), ("a.json", "empty")),
    "F22": (Box.delete_twice, None),
    "F23": (lambda box: box.list("*.json"), ("a.json",)),
    "F24": (lambda box: box.list("**/*.py"), ("d/b.py", "d/e/c.py")),
    "F25": (lambda box: box.list("*.none"), ()),
    "F26": (lambda box: box.list(), ALL),
    "F27": (lambda box: all("\\" not in path for path in box.list()), True),
    "F28": (lambda box: box.write("bytes", BINARY), BINARY),
    "F36": (lambda box: box.write("..."), b"x"),
    "F39": (lambda box: box.write("%2e%2e/x"), b"x"),
}


@pytest.mark.parametrize("case", HOST)
def test_a_case_of_the_host_holds(tmp_path: Path, case: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("secret")
    home = Home(tmp_path / "home")
    home.prepare()
    box = Box(home, outside)
    work, expected = HOST[case]
    if isinstance(expected, type):
        with pytest.raises(expected):
            work(box)
    else:
        assert work(box) == expected
    if case != "F22":
        assert box.read("a.json") == b"{}"
        assert box.read("empty") == b""
    assert sorted(path.name for path in outside.iterdir()) == ["passwd"]


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings())
    yield started
    await started.close()


async def sandbox(runtime: Runtime, id: str) -> Session:
    """A sandbox bound to a session; the widest policy there is."""
    return await runtime.sandbox(id, sandbox="python", policy=FixedPolicy(default="allow"))


GUEST = {
    "F29": "open('/etc/passwd').read()",
    "F30": "open('/app/../../other/workspace/d.txt').read()",
    "F30 by host path": "open('{home}/sessions/other/workspace/d.txt').read()",
    "F31": "open('out/passwd').read()",
    "F32": "open('/workspace/../audit.jsonl', 'w').write('forged')",
    "F32 by host path": "open('{home}/sessions/one/audit.jsonl', 'w').write('forged')",
}


@pytest.mark.parametrize("case", GUEST)
async def test_a_case_of_the_guest_holds(runtime: Runtime, tmp_path: Path, case: str) -> None:
    one, other = await sandbox(runtime, "one"), await sandbox(runtime, "other")
    await other.execute("open('d.txt', 'w').write('of the other')")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("secret")
    folder = runtime.home.workspace(one.id)
    (folder / "out").symlink_to(Path("..") / ".." / ".." / ".." / "outside")
    outcome = await one.execute(GUEST[case].format(home=runtime.home.root))
    assert not isinstance(outcome, Ok)
    lines = runtime.home.audit(one.id).read_text().splitlines()
    assert all(json.loads(line)["turn"] == 1 for line in lines), "nothing but what we wrote there"


async def test_f33_f34_created_modified_and_deleted_files_are_reported(runtime: Runtime) -> None:
    one = await sandbox(runtime, "one")
    await one.execute("open('a', 'w').write('1')\nopen('b', 'w').write('1')")
    await one.execute("import os\nopen('a', 'w').write('2')\nos.remove('b')\nopen('c', 'w').write('1')")
    changes = {change.path: change.kind for change in one.history()[-1].changes}
    assert changes == {"a": "modified", "b": "deleted", "c": "created"}


async def test_f35_two_sessions_each_see_their_own_file_of_one_name(runtime: Runtime) -> None:
    one, other = await sandbox(runtime, "one"), await sandbox(runtime, "other")
    for session in (one, other):
        await session.execute(f"open('same', 'w').write('{session.id}')")
    for session in (one, other):
        assert await session.execute("open('same').read()") == Ok(value=session.id)
        assert workspace.read(session.id, "same", home=runtime.home) == session.id.encode()
