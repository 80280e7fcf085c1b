"""Gets ready what the tests need and what takes long: run by `make test` before them. What cannot be had is said."""

import asyncio
import sys
from collections.abc import Callable

from tests.caching import NotInstalled, cache_folder
from tests.guests.wasi.running import KEY
from tests.mcp import installed as npm
from tests.teams import claude_program as claude
from tests.teams import goose_program as goose

from holdfast.core.errors import HoldfastError
from holdfast.guests.wasi import WorkerPool


def main() -> None:
    """Each thing once; a second run finds it there."""
    for what, get in (
        ("the WASI component", _component),
        ("npm's filesystem server", npm.install),
        ("the claude program", claude.install),
        ("the goose program", goose.install),
    ):
        _get(what, get)


def _get(what: str, get: Callable[[], None]) -> None:
    try:
        get()
    except (NotInstalled, HoldfastError, OSError) as problem:
        print(f"*** NOT THERE: {what}: {problem}; its tests are skipped ***", file=sys.stderr, flush=True)


def _component() -> None:
    async def build() -> None:
        workers = WorkerPool(key=KEY, cache=cache_folder("wasi"))
        await workers.prepare()
        await workers.close()

    asyncio.run(build())


if __name__ == "__main__":
    main()
