"""Running commands for tests that need no terminal: in this process through `main`, or as its own process."""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.fork_server import forked_python

from holdfast.cli import main


class Done(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with an empty data directory and without keys."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "holdfast"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in (
        "HOLDFAST_MODEL",
        "HOLDFAST_POLICY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> Done:
        capfd.readouterr()
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        return Done(code, *capfd.readouterr())

    return command


def environment(home: Path) -> dict[str, str]:
    """The environment of a user whose home directory is `home`."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HOLDFAST_HOME": str(home / "holdfast"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def holdfast(
    *words: str, home: Path, stdin: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command in this process, with the environment, folder and streams of a separate process."""
    with _streams(stdin) as (out, err), _surroundings(home, {**environment(home), **variables}):
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        shown = out.getvalue().decode(), err.getvalue().decode()
    return subprocess.CompletedProcess(words, code, *shown)


def holdfast_process(
    *words: str, home: Path, stdin: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command in its own process, as a shell does."""
    return subprocess.run(
        [*forked_python("-m", "holdfast"), *words],
        env={**environment(home), **variables},
        cwd=home,
        capture_output=True,
        text=True,
        input=stdin,
        timeout=120,
    )


@contextmanager
def _surroundings(folder: Path, variables: dict[str, str]) -> Iterator[None]:
    before, back = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    tempfile.tempdir = None  # it remembers $TMPDIR
    try:
        yield
    finally:
        os.chdir(back)
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = None


@contextmanager
def _streams(stdin: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
