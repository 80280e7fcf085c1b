"""The process of the Python interpreter is confined from its start, or does not start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.guests.engines import KEY
from tests.guests.test_python_guest import run, worker_pids

import holdfast.process.landlock as landlock
import holdfast.process.seccomp_profiles as seccomp_profiles
from holdfast.core.errors import GuestError
from holdfast.guests import python_engine
from holdfast.guests.python.launcher import launcher


async def test_a_worker_has_no_environment_no_privileges_and_three_descriptors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_SECRET", "hidden")
    inherited = os.open(__file__, os.O_RDONLY)
    os.set_inheritable(inherited, True)  # as a shell leaves one to every program that it starts
    engine = python_engine(key=KEY)
    await run(engine.guest(), "1 + 1")
    os.close(inherited)
    assert worker_pids() != []
    for process in worker_pids():
        folder = Path(f"/proc/{process}")
        status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
        assert (folder / "environ").read_bytes() == b""
        assert status["NoNewPrivs"] == "1"
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert (status["Seccomp"] == "2") == seccomp_profiles.is_known_here()
        assert sorted(int(each.name) for each in (folder / "fd").iterdir()) == [0, 1, 2]
    await engine.close()


def test_the_capabilities_name_the_confinement() -> None:
    notes = " ".join(python_engine(key=KEY).capabilities.notes)
    assert ("landlock version" in notes) == (landlock.version() > 0)
    assert ("seccomp allow-list" in notes) == seccomp_profiles.is_known_here()


async def test_an_interpreter_that_cannot_be_confined_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MONTY_BIN", str(tmp_path / "none"))
    engine = python_engine(key=KEY)
    with pytest.raises(GuestError, match="did not start"):
        await run(engine.guest(), "1 + 1")
    await engine.close()


def test_the_launcher_works_if_the_path_of_python_has_a_space(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "my projects" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    done = subprocess.run(
        [launcher("/bin/echo", message_bytes=1 << 20), "hello"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "hello\n"
