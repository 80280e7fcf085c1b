"""A data directory that cannot be written can still be read and exported. The mount is in its own namespace."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Done, environment, holdfast

MOUNT = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def _can_mount() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None and subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not _can_mount(), reason="needs a mount namespace")
@pytest.mark.promise("P16")
def test_f51_a_read_only_home_can_be_listed_read_and_exported(tmp_path: Path) -> None:
    session = prepared(tmp_path)
    outputs = {
        ("files", "ls", session): "kept.txt",
        ("files", "cat", session, "kept.txt"): "seven",
        ("why", "1.1", "--session", session): "allow by rule y",
        ("waiting",): "world.delete",
        ("sessions",): "seven",
        ("show",): "seven",
        ("search", "seven"): "seven",
        ("verify", "--all"): "OK",
        ("export", "-o", "out.zip"): "out.zip",
    }
    mounted = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(tmp_path / "holdfast")]
    *read, refused = in_one_process(mounted, tmp_path, *outputs, ("rename", "x", "y"))
    for done, expected in zip(read, outputs.values(), strict=True):
        assert done.code == 0, done.err
        assert expected in done.out
        assert "is read-only" in done.err
    assert refused.code == 1
    assert "Read-only file system" in refused.err
    assert "Traceback" not in refused.err


ASKS = """\
policy: asks
rules:
  - {name: x, escalate: world.delete, because: it deletes}
  - {name: y, allow: "*", because: it may}
"""


def prepared(home: Path) -> str:
    """A home with a session that has a file and one whose call waits. Returns the id of the first."""
    (home / "asks.yaml").write_text(ASKS)
    (home / "s.py").write_text("world.write(path='kept.txt', content='seven')\nprint('seven')")
    (home / "d.py").write_text("world.delete(path='x')  # seven")
    assert holdfast("exec", "s.py", "-p", "asks.yaml", home=home).returncode == 0
    [session] = json.loads(holdfast("sessions", "--json", home=home).stdout)
    holdfast("exec", "d.py", "-p", "asks.yaml", home=home)
    return str(session["id"])


FULL = (
    'mount -t tmpfs -o size=20m none "$1" && cp -r "$2" "$1/holdfast" && chmod 700 "$1/holdfast" && '
    '(dd if=/dev/zero of="$1/zeros" bs=4k 2>/dev/null || true) && export HOLDFAST_HOME="$1/holdfast" && shift 2 && exec "$@"'
)


@pytest.mark.skipif(not _can_mount(), reason="needs a mount namespace")
@pytest.mark.promise("P16")
def test_f51_a_home_on_a_full_disk_can_be_listed_read_and_exported(tmp_path: Path) -> None:
    prepared(tmp_path)
    (tmp_path / "disk").mkdir()

    full = ["unshare", "-rm", "sh", "-c", FULL, "sh", str(tmp_path / "disk"), str(tmp_path / "holdfast")]
    words = (("sessions",), ("show",), ("search", "seven"), ("waiting",), ("export", "-o", "full.zip"))
    *read, refused = in_one_process(full, tmp_path, *words, ("exec", "s.py", "-p", "asks.yaml"))
    for done in read:
        assert done.code == 0, done.err
        assert "is on a full disk" in done.err
    assert refused.code == 1
    assert "the disk is full" in refused.err
    assert "Traceback" not in refused.err


def in_one_process(launcher: list[str], home: Path, *commands: tuple[str, ...]) -> list[Done]:
    """Run commands one after the other in one process, which a launcher starts."""
    done = subprocess.run(
        [*launcher, sys.executable, "-m", "tests.cli.commands_main"],
        cwd=home,
        env=environment(home),
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Done(*each) for each in json.loads(done.stdout)]


def test_f51_few_descriptors_are_a_clear_error(tmp_path: Path) -> None:
    prepared(tmp_path)
    few = ["sh", "-c", 'ulimit -n 20 && exec "$@"', "sh"]
    for done in in_one_process(few, tmp_path, ("sessions",), ("show",), ("search", "seven"), ("waiting",)):
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
    program = [sys.executable, "-m", "holdfast", "exec", "s.py"]
    # Which part fails depends on the number: the event loop, the store, the engine, its runtime or its process.
    for number in (10, 14, 18, 20, 40):
        few[2] = f'ulimit -n {number} && exec "$@"'
        executed = subprocess.run(
            [*few, *program],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in executed.stderr, (number, executed.stderr)
        assert "panicked" not in executed.stderr, (number, executed.stderr)
        assert "internal error" not in executed.stderr
        if executed.returncode:
            assert "Too many open files" in executed.stderr, executed.stderr
            assert "ulimit -n" in executed.stderr, executed.stderr
