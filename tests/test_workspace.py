"""Workspaces by id, for the host: the F cases of the sandbox sessions design, over real folders."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import holdfast.workspace as workspace
from holdfast.app import Runtime
from holdfast.core import Error, Ok
from holdfast.core.errors import InvalidId, PathRefused, SessionNotFound
from holdfast.policy import FixedPolicy
from holdfast.session import Settings
from holdfast.store import Home

BAD_IDS = ["", ".", "..", "a/b", "a\\b", "a\0b", "../x", "con", "x" * 200, "a b"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = Home(tmp_path / "home")
    place.prepare()
    return place


ACTIONS: dict[str, Callable[[str, Home], object]] = {
    "create": lambda id, home: workspace.create(id, home=home),
    "get": lambda id, home: workspace.get(id, home=home),
    "list": lambda id, home: workspace.list_files(id, home=home),
    "read": lambda id, home: workspace.read(id, "x", home=home),
    "write": lambda id, home: workspace.write(id, "x", "y", home=home),
    "remove": lambda id, home: workspace.remove(id, "x", home=home),
    "delete": lambda id, home: workspace.delete(id, home=home),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("bad", BAD_IDS)
def test_an_invalid_id_is_refused_everywhere(home: Home, action: str, bad: str) -> None:
    kept = workspace.create("kept", home=home)
    workspace.write("kept", "a.txt", "x", home=home)
    with pytest.raises(InvalidId):
        ACTIONS[action](bad, home)
    assert (kept.path / "a.txt").read_text() == "x"


def test_files_are_written_read_copied_and_removed(home: Home, tmp_path: Path) -> None:
    made = workspace.create(home=home)
    id = made.session
    workspace.write(id, "d/e/f.txt", "text", home=home)
    workspace.write(id, "data.bin", bytes(range(256)), home=home)
    assert workspace.list_files(id, home=home) == ("d/e/f.txt", "data.bin")
    assert workspace.list_files(id, "*.bin", home=home) == ("data.bin",)
    assert workspace.read(id, "data.bin", home=home) == bytes(range(256))
    with pytest.raises(FileExistsError):
        workspace.write(id, "data.bin", b"", overwrite=False, home=home)
    with pytest.raises(FileNotFoundError):
        workspace.read(id, "missing", home=home)
    with pytest.raises(IsADirectoryError):
        workspace.read(id, "d", home=home)
    (tmp_path / "outside.txt").write_text("from outside")
    workspace.copy_files_in(id, tmp_path / "outside.txt", "in.txt", home=home)
    workspace.copy_files_out(id, "in.txt", tmp_path / "back.txt", home=home)
    assert (tmp_path / "back.txt").read_text() == "from outside"
    workspace.remove(id, "d", recursive=True, home=home)
    assert workspace.list_files(id, home=home) == ("data.bin", "in.txt")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a\0b", "..\\x", "C:\\x"])
def test_no_path_leads_out_of_the_workspace(home: Home, path: str) -> None:
    id = workspace.create(home=home).session
    with pytest.raises((PathRefused, ValueError)):
        workspace.write(id, path, "x", home=home)


def test_deleting_twice_succeeds_and_reading_then_fails(home: Home) -> None:
    id = workspace.create(home=home).session
    workspace.delete(id, home=home)
    workspace.delete(id, home=home)
    with pytest.raises(SessionNotFound):
        workspace.read(id, "x", home=home)


@pytest.mark.parametrize("replaced", ["", "workspace"])
def test_delete_never_follows_a_symlink(home: Home, tmp_path: Path, replaced: str) -> None:
    id = workspace.create(home=home).session
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "workspace").mkdir(parents=True)
    place = home.session_folder(id) / replaced
    place.rename(tmp_path / "moved")
    place.symlink_to(elsewhere)
    workspace.delete(id, home=home)
    assert [path.name for path in elsewhere.iterdir()] == ["workspace"]


@pytest.fixture
async def runtime(home: Home) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=home.root, settings=Settings())
    yield started
    await started.close()


async def test_a_sandbox_sees_only_its_own_session(runtime: Runtime, home: Home) -> None:
    policy = FixedPolicy(default="allow")
    one = await runtime.sandbox(sandbox="python", policy=policy)
    other = await runtime.sandbox("550e8400-e29b-41d4-a716-446655440000", sandbox="python", policy=policy)
    await one.execute("open('d.txt', 'w').write('one')\nkept = 1")
    await other.execute("open('d.txt', 'w').write('other')")
    assert workspace.read(one.id, "d.txt", home=home) == b"one"
    assert workspace.read(other.id, "d.txt", home=home) == b"other"
    peek = await other.execute(f"open('/workspace/../../{one.id}/workspace/d.txt').read()")
    assert not isinstance(peek, Ok)
    await one.close()
    asked = await runtime.sandbox(sandbox="python", can_ask=False)
    for path in ("../x", "/etc/passwd", f"../{one.id}/d.txt"):
        assert isinstance(await asked.execute(f"open({path!r}).read()"), Error), "refused, and not waiting"
    again = await runtime.sandbox(one.id, sandbox="python", policy=policy)
    assert await again.execute("kept") == Ok(value=1)
