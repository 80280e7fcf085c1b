"""Completion, sourced by the shells themselves."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.cli.terminals import at_terminal

from holdfast.cli.command_list import COMMANDS

__all__ = ["run"]
Complete = Callable[[str], list[str]]
_BASH = """
source "$1"
holdfast() { echo "named 2026-11-16-01"; }
read -ra COMP_WORDS <<< "$2"
[[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_holdfast
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(params=["bash", "fish"])
def complete(request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Complete:
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"{request.param} is not installed")
    script = tmp_path / f"completion.{request.param}"
    script.write_text(run("completion", request.param).out)

    def by(line: str) -> list[str]:
        fish = (
            f"source {script}; function holdfast; echo named; echo 2026-11-16-01; end; complete -C '{line}'"
        )
        words = ["-c", _BASH, "-", str(script), line] if request.param == "bash" else ["-c", fish]
        done = subprocess.run(
            [shell, *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )
        assert not done.stderr, done.stderr
        return sorted(found.split("\t")[0] for found in done.stdout.splitlines() if found)

    return by


def test_commands_and_subcommands_are_completed(complete: Complete) -> None:
    assert complete("holdfast pol") == ["policy"]
    assert complete("holdfast policy ch") == ["check"]
    assert {"sessions", "search", "show"} <= set(complete("holdfast s"))
    assert set(COMMANDS) <= set(complete("holdfast "))


def test_options_and_their_choices_are_completed(complete: Complete) -> None:
    assert complete("holdfast --sand") == ["--sandbox"]
    assert complete("holdfast --sandbox ") == ["auto", "lisp", "python", "system", "wasi"]
    assert complete("holdfast policy check --prot") == ["--protected"]
    assert complete("holdfast sandbox b") == ["build"]


def test_the_word_after_an_option_is_its_value(complete: Complete) -> None:
    assert complete("holdfast -w demo se") == ["search", "serve", "sessions"]


def test_sessions_are_completed_by_name_and_id(complete: Complete) -> None:
    assert complete("holdfast show na") == ["named"]
    assert complete("holdfast -r 2026") == ["2026-11-16-01"]


def test_zsh_completes_at_its_prompt(run: Run, tmp_path: Path) -> None:
    shell = shutil.which("zsh")
    if shell is None:
        pytest.skip("zsh is not installed")
    script = tmp_path / "completion.zsh"
    script.write_text(run("completion", "zsh").out)
    with at_terminal([shell, "-f", "-i"], home=tmp_path, TERM="dumb", PS1="ready> ") as user:
        assert user.wait_for("ready> ")
        user.type(f"autoload -Uz compinit; compinit -D; source {script}; echo lo''aded\n")
        assert user.wait_for("loaded")
        for typed, expected in (("holdfast policy che", "check "), ("holdfast --sandb", "--sandbox ")):
            user.type(f"{typed}\t")
            assert user.wait_for(expected), user.seen
            user.type("\x15")


def test_sessions_are_listed_for_the_scripts(run: Run, tmp_path: Path) -> None:
    assert run("completion", "sessions").out == ""
    assert not (tmp_path / "holdfast").exists(), "pressing Tab creates no data directory"
    (tmp_path / "code.py").write_text("print(1)")
    assert run("exec", "code.py").code == 0
    run("rename", *run("completion", "sessions").out.split(), "my-own")
    name, identity = run("completion", "sessions").out.split()
    assert name == "my-own"
    assert identity.startswith("20")


def test_listing_sessions_loads_nothing_heavy(tmp_path: Path) -> None:
    words = "import sys; from holdfast.cli import main; main(['completion', 'sessions']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", words],
        env={"HOLDFAST_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not {"yaml", "pydantic_ai", "mcp", "rich", "prompt_toolkit", "holdfast.app"} & set(
        done.stdout.split()
    )


@pytest.mark.soak
def test_completing_a_word_in_bash_is_fast(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").out)
    begun = time.monotonic()
    for _ in range(20):
        subprocess.run(
            ["bash", "-c", _BASH, "-", str(script), "holdfast pol"], check=True, stdout=subprocess.DEVNULL
        )
    assert (time.monotonic() - begun) / 20 < 0.1
