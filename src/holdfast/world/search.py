"""Searches the lines of files for a regular expression, with a time limit.

The guest chooses the expression. Python's engine can run forever on a bad one and cannot be interrupted from inside the
process, so a child process compiles and runs it and is killed at the limit. A linear-time engine would avoid the child, but
it is a compiled dependency with another dialect. Plain text is searched in this process.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from holdfast.core.errors import InvalidInput, PathRefused
from holdfast.world.contract import Hit

TIMEOUT_SECONDS = 5.0
MAX_QUERY_LENGTH = 1000
MAX_LINE_LENGTH = 500
MAX_FILE_BYTES = 8 << 20
MAX_TOTAL_BYTES = 64 << 20

_PLAIN_WORDS = re.compile(r"[^\\.^$*+?{}\[\]|()\n\r]+")
_CHILD = Path(__file__).with_name("search_child_main.py")


def search_files(
    paths: Iterable[str],
    read: Callable[[str], bytes],
    query: str,
    *,
    limit: int,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> tuple[Hit, ...]:
    """The first `limit` lines that match, in the order of the paths. Raises InvalidInput, TimeoutError."""
    if not query or len(query) > MAX_QUERY_LENGTH:
        raise InvalidInput(f"a query has 1 to {MAX_QUERY_LENGTH} characters")
    if limit < 0:
        raise InvalidInput("the limit must be 0 or more")
    texts = _texts(paths, read)
    if _PLAIN_WORDS.fullmatch(query):
        return tuple(_plain_hits(texts, query, limit))
    return _hits_of_child(texts, query, limit, timeout_seconds)


def _texts(paths: Iterable[str], read: Callable[[str], bytes]) -> Iterator[tuple[str, str]]:
    """The text files among the paths. Files that are binary, too large or deleted in the meantime are skipped."""
    total = 0
    for path in paths:
        try:
            content = read(path)
        except (OSError, PathRefused):
            continue
        if len(content) > MAX_FILE_BYTES or b"\0" in content[:8192]:
            continue
        total += len(content)
        if total > MAX_TOTAL_BYTES:
            raise InvalidInput(
                f"the files to search have more than {MAX_TOTAL_BYTES >> 20} MB",
                hint="use a pattern that matches fewer files",
            )
        yield path, content.decode("utf-8", "replace")


def _plain_hits(texts: Iterable[tuple[str, str]], query: str, limit: int) -> Iterator[Hit]:
    found = 0
    for path, text in texts:
        if query not in text:
            continue
        for number, line in enumerate(text.split("\n"), start=1):
            if query in line:
                if found == limit:
                    return
                found += 1
                yield Hit(path=path, line=number, text=line[:MAX_LINE_LENGTH].rstrip("\r"))


def _hits_of_child(
    texts: Iterable[tuple[str, str]], query: str, limit: int, timeout_seconds: float
) -> tuple[Hit, ...]:
    request = json.dumps({"query": query, "limit": limit, "width": MAX_LINE_LENGTH, "texts": list(texts)})
    try:
        done = subprocess.run(  # noqa: S603  our own interpreter and our own file, no shell
            [sys.executable, "-I", "-S", str(_CHILD)],
            input=request.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_seconds,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the search for {query!r} took longer than {timeout_seconds:g} s") from None
    if done.returncode != 0:
        raise InvalidInput(
            f"the search for {query!r} needs too much memory or time", hint="use a simpler expression"
        )
    answer = json.loads(done.stdout)
    if isinstance(answer, str):
        raise InvalidInput(f"{query!r} is not a valid regular expression: {answer}")
    return tuple(Hit(path=path, line=line, text=text) for path, line, text in answer)
