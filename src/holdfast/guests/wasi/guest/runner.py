"""Runs code as the next cell of a session: value of the last expression, honest traceback, variables kept."""

import ast
import inspect
import json
import linecache
import math
import pathlib
import traceback
from collections.abc import Coroutine
from types import CodeType
from typing import Any, Literal

from . import loop
from .limits import LimitReached

_OURS = str(pathlib.Path(__file__).parent)
_MAX_JSON_INTEGER = 2**63

Status = Literal["ok", "error", "limit", "refused"]


class Ended:
    """How the code ended, as it is told to the host."""

    def __init__(self, status: Status, *, value: object = None, error: str = "") -> None:
        self.status, self.value, self.error = status, value, error


def run(
    code: str, namespace: dict[str, Any], *, number: int, value_bytes: int, lost: dict[str, str]
) -> Ended:
    """Compile and run code in the namespace. `lost` names variables that could not be kept, and why."""
    name = f"<run {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        body, last = _compiled(code, name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        text = "".join(traceback.format_exception_only(problem))
        return Ended("refused", error=text.encode("utf-8", "backslashreplace").decode())
    try:
        _execute(body, namespace)
        value = None if last is None else _execute(last, namespace)
        return Ended("ok", value=_as_json(value, value_bytes))
    except SystemExit as leave:
        return Ended("ok") if leave.code in (None, 0) else Ended("error", error=f"SystemExit: {leave.code!r}")
    except LimitReached as limit:
        return Ended("limit", error=str(limit))
    except MemoryError as problem:
        return Ended("limit", error=_traceback(problem))
    except BaseException as problem:
        if isinstance(problem, NameError) and problem.name in lost:
            problem.add_note(
                f"{problem.name!r} could not be kept from an earlier process: {lost[problem.name]}"
            )
        return Ended("error", error=_traceback(problem))


def _compiled(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    """The statements, and apart from them the last expression, whose value the run has."""
    tree = ast.parse(code, name)
    last: CodeType | None = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        expression = tree.body.pop()
        assert isinstance(expression, ast.Expr)
        last = _compile(ast.Expression(expression.value), name, "eval")
    return _compile(tree, name, "exec"), last


def _compile(tree: ast.Module | ast.Expression, name: str, mode: str) -> CodeType:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled: CodeType = compile(tree, name, mode, flags=flags, dont_inherit=True)
    return compiled


def _execute(code: CodeType, namespace: dict[str, Any]) -> Any:
    result = eval(code, namespace)  # noqa: S307 - this is what the sandbox is for
    if code.co_flags & inspect.CO_COROUTINE and isinstance(result, Coroutine):
        return loop.run(result)
    return result


def _traceback(problem: BaseException) -> str:
    """CPython's own traceback without the frames of this package."""
    told = traceback.TracebackException.from_exception(problem)
    _drop_our_frames(told, depth=0)
    return "".join(told.format()).encode("utf-8", "backslashreplace").decode()


def _drop_our_frames(told: traceback.TracebackException, *, depth: int) -> None:
    told.stack[:] = [frame for frame in told.stack if not frame.filename.startswith(_OURS)]
    if depth > 20:
        return
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if other is not None:
            _drop_our_frames(other, depth=depth + 1)


def _as_json(value: object, value_bytes: int) -> object:
    """The value where JSON can say it, else its representation; bounded either way."""
    try:
        plain = _plain(value)
        if len(json.dumps(plain, allow_nan=False)) <= value_bytes:
            return plain
    except (TypeError, ValueError, RecursionError):
        pass
    text = repr(value)
    return text if len(text) <= value_bytes else f"{text[:value_bytes]}… (cut)"


def _plain(value: object) -> object:
    """Refuses what JSON would bend silently: NaN, integers beyond 64 bits, keys that are no text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode().decode()  # a lone surrogate is a ValueError here
    if type(value) is int and -_MAX_JSON_INTEGER <= value < _MAX_JSON_INTEGER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) in (list, tuple):
        return [_plain(item) for item in value]  # type: ignore[attr-defined]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(item) for key, item in value.items()}
    raise TypeError("not plain")
