"""Commands whose standard streams are closed, full or not text."""

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HOLDFAST_HOME": str(home / "holdfast"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def shell(home: Path, line: str) -> subprocess.CompletedProcess[bytes]:
    """Run one line in a shell in which `holdfast` is the program."""
    program = f"{shlex.quote(sys.executable)} -m holdfast"
    return subprocess.run(
        ["/bin/sh", "-c", f'holdfast() {{ {program} "$@"; }}\n{line}'],
        env=_environment(home),
        cwd=home,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "four.json").write_text('["Four."]')
    return tmp_path


def test_a_task_answers_with_stderr_or_stdin_closed(home: Path) -> None:
    for closed in ("2>&-", "<&-", "2>&- <&-"):
        done = shell(home, f"holdfast -m scripted:four.json 'two and two?' {closed}")
        assert (done.returncode, done.stdout) == (0, b"Four.\n"), closed


def test_a_command_with_stdout_closed_succeeds_and_writes_into_no_other_file(home: Path) -> None:
    done = shell(home, "holdfast -m scripted:four.json hello >&- && holdfast sessions >&- && holdfast verify")
    assert done.returncode == 0, done.stderr
    assert b"OK" in done.stdout


@pytest.mark.parametrize("words", ["explain exit-codes", "--help", "--version", "policy --help"])
def test_a_full_disk_behind_stdout_is_reported_in_one_line_with_a_hint(home: Path, words: str) -> None:
    done = shell(home, f"holdfast {words} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == b"holdfast: [Errno 28] No space left on device"
    assert b"Traceback" not in done.stderr


def test_undecodable_input_bytes_become_replacement_characters(home: Path) -> None:
    done = shell(home, r"printf '\377 end' | holdfast -m scripted:four.json look")
    assert (done.returncode, done.stdout) == (0, b"Four.\n"), done.stderr
    assert "\ufffd end".encode() in shell(home, "holdfast show").stdout


def test_an_argument_that_is_not_utf8_is_refused(home: Path) -> None:
    done = shell(home, r"""holdfast show "$(printf '\377')" """)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == rb"holdfast: '\udcff' is not valid UTF-8"


def test_characters_that_stdout_cannot_encode_are_escaped(home: Path) -> None:
    (home / "four.json").write_text('["caf\\u00e9"]')
    done = shell(
        home, "PYTHONIOENCODING=ascii:strict; export PYTHONIOENCODING; holdfast -m scripted:four.json hi"
    )
    assert (done.returncode, done.stdout) == (0, b"caf\\xe9\n"), done.stderr


def test_a_table_can_be_piped_from_a_terminal(home: Path) -> None:
    assert shell(home, "holdfast -m scripted:four.json hello").returncode == 0
    person, terminal = pty.openpty()
    try:
        for command in ("audit", "doctor", "sessions"):
            done = subprocess.run(
                [sys.executable, "-m", "holdfast", command],
                env={**_environment(home), "TERM": "xterm"},
                stdin=terminal,
                stdout=subprocess.PIPE,
                stderr=terminal,
                timeout=120,
                check=False,
            )
            assert done.returncode == (1 if command == "doctor" else 0), os.read(person, 4000)
            assert done.stdout, command
    finally:
        os.close(person)
        os.close(terminal)


def test_ctrl_c_during_startup_prints_one_word(home: Path) -> None:
    pressed = (
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'holdfast.cli.commands.sessions':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Press())\n"
        "from holdfast.cli import main\n"
        "sys.exit(main(['sessions']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", pressed],
        env=_environment(home),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"stopped\n")
