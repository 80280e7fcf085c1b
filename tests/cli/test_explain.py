"""`holdfast explain`: every code that can occur has an explanation."""

import ast
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from tests.cli.commands import Run, run

import holdfast
from holdfast.cli import exit_codes
from holdfast.cli.error_help import load_error_help
from holdfast.core.errors import HoldfastError
from holdfast.core.events import RunStatus

__all__ = ["run"]
PACKAGE = Path(holdfast.__file__).parent


def error_classes(kind: type[HoldfastError] = HoldfastError) -> Iterator[type[HoldfastError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from error_classes(below)


def outcome_codes() -> Iterator[str]:
    """Codes of outcomes without an error class."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Error", "_failed"):
                for word in node.keywords:
                    if word.arg == "code" and isinstance(word.value, ast.Constant):
                        yield str(word.value.value)


def lisp_codes() -> Iterator[str]:
    """Codes of errors in Lisp programs, which `try` and an uncaught error report."""
    for path in (PACKAGE / "guests" / "lisp").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "LispError":
                match node.args:
                    case [ast.Constant(value=str(code)), *_]:
                        yield code
                    case _:
                        pass


def test_f26_every_code_of_a_lisp_error_is_explained() -> None:
    assert len(set(lisp_codes())) > 8
    assert set(lisp_codes()) <= load_error_help().keys()


def test_every_code_that_can_occur_is_explained() -> None:
    for module in pkgutil.walk_packages([str(PACKAGE)], "holdfast."):
        if module.name.rpartition(".")[2] == "errors":
            import_module(module.name)
    runs = {f"guest-{status}" for status in get_args(RunStatus) if status != "ok"}
    ours = {kind.code for kind in error_classes() if kind.__module__.startswith("holdfast.")}
    assert ours | runs | set(outcome_codes()) <= load_error_help().keys()


@pytest.mark.parametrize("code", load_error_help())
def test_an_explanation_says_what_happened_why_and_what_to_do(code: str) -> None:
    explanation = load_error_help()[code]
    for text in (explanation.what, explanation.why, explanation.todo):
        assert text.endswith(".")
        assert len(text) > 10


def test_a_code_is_explained_at_the_command_line(run: Run) -> None:
    done = run("explain", "session-held")
    assert done.code == 0
    assert done.out.startswith("session-held\n  Another process is writing this session.\n  why  ")
    assert "\n  do   " in done.out


@pytest.mark.parametrize("code", exit_codes.MEANINGS)
def test_an_exit_code_is_explained(run: Run, code: int) -> None:
    assert exit_codes.MEANINGS[code] in run("explain", str(code)).out
    assert exit_codes.MEANINGS[code] in run("explain", "exit-codes").out


def test_a_misspelt_code_suggests_the_nearest(run: Run) -> None:
    done = run("explain", "sesion-held")
    assert (done.code, "did you mean session-held?" in done.err) == (2, True)


def test_an_error_names_its_code(run: Run) -> None:
    done = run("show", "nowhere")
    assert done.code == 1
    assert "(session-not-found)" in done.err


@pytest.mark.parametrize("lisp", ['(world/read "absent.txt")', '(error \'no-rows "none")'])
def test_f26_the_hint_of_failed_code_names_a_code_that_is_explained(
    run: Run, tmp_path: Path, lisp: str
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "code.lisp").write_text(lisp)
    done = run("exec", "-w", "project", "--trust", "--lang", "lisp", "code.lisp")
    hint = done.err.rpartition("hint: holdfast ")[2]
    assert run(*hint.split()).code == 0, done.err
