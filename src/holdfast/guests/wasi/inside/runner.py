"""Runs code as the next cell of a session: returns the value of the last expression or the traceback, and keeps the variables.

Output goes to the host early, so that a run that is killed still shows it.
"""

import ast
import inspect
import io
import json
import linecache
import math
import pathlib
import time
import traceback
from collections.abc import Callable, Coroutine
from types import CodeType
from typing import Any, Literal, TextIO

from . import stdlib

_PACKAGE = str(pathlib.Path(__file__).parent)
_MAX_JSON_INTEGER = 2**63

_UNBUFFERED_WRITES = 64
"""The first writes of a run go out at once. Each leaves the sandbox, which is slow, so later ones are buffered."""
_BUFFER_SECONDS = 0.02
_BUFFER_BYTES = 32 << 10

Status = Literal["ok", "error", "limit", "refused"]


class LimitReached(BaseException):
    """The run reached a limit and must end. Not an `Exception`, so that `except Exception` does not catch it."""


class RunResult:
    """How the code ended, for the reply to the host."""

    def __init__(
        self, status: Status, *, value: object = None, error: str = "", problem: BaseException | None = None
    ) -> None:
        self.status, self.value, self.error, self.problem = status, value, error, problem


def run(
    code: str, namespace: dict[str, Any], *, number: int, value_bytes: int, lost: dict[str, str]
) -> RunResult:
    """Compile and run code in the namespace. `lost` names variables that could not be kept, and why."""
    name = f"<run {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        body, last = _compile_cell(code, name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        text = "".join(traceback.format_exception_only(problem))
        return RunResult("refused", error=text.encode("utf-8", "backslashreplace").decode())
    try:
        _execute(body, namespace)
        value = None if last is None else _execute(last, namespace)
        return RunResult("ok", value=_as_json(value, value_bytes))
    except SystemExit as leave:
        return (
            RunResult("ok")
            if leave.code in (None, 0)
            else RunResult("error", error=f"SystemExit: {leave.code!r}")
        )
    except LimitReached as limit:
        return RunResult("limit", error=str(limit), problem=limit)
    except MemoryError as problem:
        return RunResult("limit", error=_traceback(problem), problem=problem)
    except BaseException as problem:
        if isinstance(problem, NameError) and problem.name in lost:
            problem.add_note(
                f"{problem.name!r} could not be kept from an earlier process: {lost[problem.name]}"
            )
        return RunResult("error", error=_traceback(problem), problem=problem)


def _compile_cell(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    """The statements, and separately the last expression, whose value is the value of the run."""
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
        return stdlib.run_coroutine(result)
    return result


def _traceback(problem: BaseException) -> str:
    """CPython's own traceback without the frames of this package."""
    rendered = traceback.TracebackException.from_exception(problem)
    _drop_our_frames(rendered, depth=0)
    return "".join(rendered.format()).encode("utf-8", "backslashreplace").decode()


def _drop_our_frames(rendered: traceback.TracebackException, *, depth: int) -> None:
    rendered.stack[:] = [frame for frame in rendered.stack if not frame.filename.startswith(_PACKAGE)]
    if depth > 20:
        return
    for other in (rendered.__cause__, rendered.__context__, *(getattr(rendered, "exceptions", None) or ())):
        if other is not None:
            _drop_our_frames(other, depth=depth + 1)


def _as_json(value: object, value_bytes: int) -> object:
    """The value if JSON can represent it, else its repr; a description if it is too large."""
    shown: object
    try:
        shown = _plain(value)
        size = len(json.dumps(shown, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        shown = repr(value)
        size = len(shown.encode("utf-8", "backslashreplace"))
    return shown if size <= value_bytes else f"<a value of {size} bytes; at most {value_bytes} are shown>"


def _plain(value: object) -> object:
    """The value as plain data. Raises for what JSON would change silently: NaN, integers beyond 64 bits, keys that are not text."""
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


class Output(io.TextIOBase, TextIO):
    """Standard output and error of a run in one stream of limited size."""

    def __init__(self, show: Callable[[str], None], limit_bytes: int) -> None:
        self._show = show
        self._bytes_left = limit_bytes
        self._limit_bytes = limit_bytes
        self._writes = 0
        self._buffered: list[str] = []
        self._buffered_bytes = 0
        self._flushed = time.monotonic()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._bytes_left <= 0:
            raise LimitReached(f"the code printed more than {self._limit_bytes} bytes")
        content = text.encode("utf-8", "replace")
        room, self._bytes_left = self._bytes_left, self._bytes_left - len(content)
        if self._bytes_left < 0:
            self._push(content[:room].decode("utf-8", "ignore"), room)
            self.flush()
            raise LimitReached(f"the code printed more than {self._limit_bytes} bytes")
        self._push(content.decode("utf-8"), len(content))
        return len(text)

    def flush(self) -> None:
        if not self._buffered:
            return
        text, self._buffered, self._buffered_bytes = "".join(self._buffered), [], 0
        self._flushed = time.monotonic()
        self._show(text)

    def _push(self, text: str, size: int) -> None:
        self._buffered.append(text)
        self._buffered_bytes += size
        self._writes += 1
        if not text.endswith("\n") and self._buffered_bytes < _BUFFER_BYTES:
            return
        is_early = self._writes <= _UNBUFFERED_WRITES
        is_due = is_early or self._buffered_bytes >= _BUFFER_BYTES
        if is_due or time.monotonic() - self._flushed > _BUFFER_SECONDS:
            self.flush()
