"""A home with foreign files: they neither block the store nor prevent it from opening."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.sample_events import opened, said
from tests.support.fork_server import forked_python

from holdfast.core import FakeClock
from holdfast.core.errors import StoreUnavailable
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore

Put = Callable[[Path], None]

FOREIGN: dict[str, Put] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to nothing": lambda path: path.symlink_to("/nonexistent/file"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("thing", FOREIGN)
async def test_files_that_are_not_process_locks_are_ignored(home: Home, clock: FakeClock, thing: str) -> None:
    home.prepare()
    FOREIGN[thing](home.process_locks / "foreign")
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    assert (await store.holder(journal.session)) is not None
    await store.close()


@pytest.mark.parametrize("thing", FOREIGN)
async def test_a_search_index_that_is_not_a_file_is_rebuilt(home: Home, clock: FakeClock, thing: str) -> None:
    home.prepare()
    FOREIGN[thing](home.search)
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(said(1, "needle"))
    assert len(await store.search("needle")) == 1
    await store.close()


@pytest.mark.parametrize("thing", FOREIGN)
async def test_a_database_path_that_is_not_a_database_is_reported_and_left_unchanged(
    home: Home, clock: FakeClock, thing: str
) -> None:
    home.prepare()
    FOREIGN[thing](home.database)
    with pytest.raises(StoreUnavailable):
        await SqliteStore.start(home, clock=clock)
    assert os.path.lexists(home.database)


@pytest.mark.parametrize("thing", FOREIGN)
def test_an_invalid_key_is_reported(home: Home, thing: str) -> None:
    home.prepare()
    FOREIGN[thing](home.root / "key")
    with pytest.raises(StoreUnavailable):
        home.key()


async def test_a_database_of_a_newer_version_is_refused(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    await store.create(opened())
    await store.close()
    content = bytearray(home.database.read_bytes())
    content[60:64] = (2).to_bytes(4, "big")  # user_version
    home.database.write_bytes(content)
    with pytest.raises(StoreUnavailable, match="newer version of Holdfast"):
        await SqliteStore.start(home, clock=clock)
    assert home.database.read_bytes() == content


@pytest.mark.parametrize("now_ms", [-1, 1_001_794_860_000_000])
async def test_an_absurd_clock_is_reported_and_nothing_is_created(home: Home, now_ms: int) -> None:
    with pytest.raises(StoreUnavailable, match="clock"):
        await SqliteStore.start(home, clock=FakeClock(now_ms))
    assert not home.root.exists()


def test_the_home_is_private_whatever_the_user_does(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("open('a.txt', 'w').write('x')")
    (tmp_path / "script.json").write_text('["Hello."]')

    asked = {
        "session_id": "theirs",
        "cwd": str(tmp_path),
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }

    def holdfast(*words: str, stdin: str = "") -> None:
        done = subprocess.run(
            forked_python("-m", "holdfast", *words),
            env={**os.environ, "HOME": str(tmp_path), "HOLDFAST_HOME": str(tmp_path / "home")},
            cwd=tmp_path,
            input=stdin.encode(),
            capture_output=True,
            umask=0,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    holdfast("init")
    holdfast("exec", "code.py")
    holdfast("-m", "scripted:script.json", "-n", "one", "hello")
    holdfast("fork", "one", "-n", "two")
    holdfast("export", "one", "-o", "one.zip")
    holdfast("delete", "two", "--yes")
    holdfast("delete", "one", "--yes")
    holdfast("import", "one.zip")
    holdfast("search", "hello")
    holdfast("hook", "claude", stdin=json.dumps(asked))
    holdfast("teams", "init")
    left = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    open_to_others = [path for path in left if path.lstat().st_mode & 0o077]
    assert open_to_others == []
    assert {"mine.yaml", "signs", "search.db", "key", "claude-theirs", "teams.yaml"} <= {
        path.name for path in left
    }
