"""The examples in the guides about sessions run in order and print what the guides show."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_task import holdfast, script
from tests.support.fork_server import forked_python

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with one session, named parser."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "holdfast").write_text(
        f'#!/bin/sh\nexec {shlex.join(forked_python("-m", "holdfast"))} "$@"\n'
    )
    (programs / "python3").symlink_to(sys.executable)
    (programs / "holdfast").chmod(0o755)
    model = script(tmp_path, "It splits at every comma.")
    done = holdfast("-n", "parser", "-m", model, "why does the parser fail?", home=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "holdfast").rename(tmp_path / ".holdfast")
    return {
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def test_the_guide_to_backups_works(machine: dict[str, str]) -> None:
    guide = (GUIDES / "back-up-and-move.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", guide, re.DOTALL)
    steps: list[tuple[str, list[str]]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    assert len(steps) > 12
    mark = "next-step"
    program = "\n".join(f"{command}\necho {mark}" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", program],
        env=machine,
        cwd=machine["HOME"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for (command, shown), output in zip(steps, done.stdout.split(f"{mark}\n"), strict=False):
        for line in shown:
            pattern = ".*".join(map(re.escape, line.split("…")))
            assert re.search(pattern, output), (command, line, output)
        if not shown:
            assert output.strip() == "", (command, output)
