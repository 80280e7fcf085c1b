"""A data directory that cannot be written can still be read and exported. The mount is in a namespace of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import environment, holdfast

MOUNT = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def _can_mount() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None and subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not _can_mount(), reason="needs a mount namespace")
def test_f51_a_read_only_home_can_be_listed_read_and_exported(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print('seven')")
    assert holdfast("exec", "s.py", home=tmp_path).returncode == 0
    outputs = {
        ("sessions",): "seven",
        ("show",): "seven",
        ("search", "seven"): "seven",
        ("verify", "--all"): "OK",
        ("export", "-o", "out.zip"): "out.zip",
    }
    for words, expected in outputs.items():
        done = read_only(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
        assert "is read-only" in done.stderr
    refused = read_only(tmp_path, "rename", "x", "y")
    assert refused.returncode == 1
    assert "Read-only file system" in refused.stderr
    assert "Traceback" not in refused.stderr


def read_only(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "holdfast", *words]
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(home / "holdfast"), *command],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )


def test_f51_few_descriptors_are_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print('seven')")
    for words in (("sessions",), ("exec", "s.py")):
        done = subprocess.run(
            ["sh", "-c", 'ulimit -n 20 && exec "$@"', "sh", sys.executable, "-m", "holdfast", *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        assert done.returncode == 0 or "Too many open files" in done.stderr
