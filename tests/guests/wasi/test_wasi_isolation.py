"""A guest can access its workspace and nothing else: every path that leads out is refused."""

import os
from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, run

from holdfast.guests import Guest
from holdfast.guests.wasi import WorkerPool, wasi_engine


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/self/environ", "/", "/tmp", "..", "/app/..", "/workspace/../.."]
)
async def test_nothing_outside_the_workspace_can_be_opened(guest: Guest, path: str) -> None:
    ended = await run(
        guest, f"import os\ntry: os.listdir({path!r})\nexcept NotADirectoryError: pass\nopen({path!r}).read()"
    )
    assert ended.status == "error"


async def test_a_file_of_another_session_cannot_be_reached(cache: Path, tmp_path: Path) -> None:
    workers = WorkerPool(key=KEY, cache=cache)
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder in (mine, theirs):
        folder.mkdir()
    engines = [
        wasi_engine(key=KEY, cache=cache, workspace=folder, workers=workers) for folder in (mine, theirs)
    ]
    await run(engines[1].guest(), "open('d.txt', 'w').write('theirs')")
    for path in ("/app/../theirs/d.txt", "../theirs/d.txt", str(theirs / "d.txt")):
        ended = await run(engines[0].guest(), f"open({path!r}).read()")
        assert ended.status == "error", path
    for engine in engines:
        await engine.close()
    await workers.close()


async def test_a_symlink_that_leads_out_is_neither_created_nor_followed(
    guest: Guest, workspace: Path
) -> None:
    (workspace.parent / "secret").write_text("secret")
    assert "PermissionError" in (await run(guest, "import os\nos.symlink('../secret', 'link')")).error
    (workspace / "link").symlink_to("../secret")
    assert "PermissionError" in (await run(guest, "open('link').read()")).error
    assert "PermissionError" in (await run(guest, "open('link', 'w')")).error
    assert (workspace.parent / "secret").read_text() == "secret"


async def test_the_guest_cannot_hard_link_a_file_outside_the_workspace(guest: Guest, workspace: Path) -> None:
    (workspace.parent / "secret").write_text("secret")
    ended = await run(guest, "import os\nos.link('../secret', 'mine')")
    assert "PermissionError" in ended.error
    assert os.listdir(workspace) == []


async def test_a_guest_cannot_write_next_to_its_workspace(guest: Guest, workspace: Path) -> None:
    (workspace.parent / "metadata.json").write_text("{}")
    for path in ("/app/../metadata.json", "../metadata.json", str(workspace.parent / "metadata.json")):
        assert (await run(guest, f"open({path!r}, 'w').write('forged')")).status == "error"
    assert (workspace.parent / "metadata.json").read_text() == "{}"


async def test_there_is_no_environment_and_no_network(guest: Guest) -> None:
    assert (await run(guest, "import os, sys\n[dict(os.environ), sys.argv]")).value == [{}, []]
    assert (
        await run(guest, "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)")
    ).status == "error"
