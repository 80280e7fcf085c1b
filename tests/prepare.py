"""Install and build what the tests need and what takes long. `make test` runs this first.

What cannot be installed is reported, and the tests that need it are skipped.
"""

import asyncio
import sys
from collections.abc import Callable

from tests.guests.wasi.running import KEY
from tests.installed_programs import NotInstalled, cache_folder
from tests.mcp import installed as npm
from tests.teams import claude_program as claude
from tests.teams import goose_program as goose
from tests.web import browser

from holdfast.core.errors import HoldfastError
from holdfast.guests.wasi import WorkerPool


def main() -> None:
    """Prepare each thing once; a second run finds it in the cache."""
    for what, install in (
        ("the WASI component", _component),
        ("npm's filesystem server", npm.install),
        ("the claude program", claude.install),
        ("the goose program", goose.install),
        ("the browser", browser.install),
    ):
        _try(what, install)


def _try(what: str, install: Callable[[], None]) -> None:
    try:
        install()
    except (NotInstalled, HoldfastError, OSError) as problem:
        print(f"*** NOT INSTALLED: {what}: {problem}; its tests are skipped ***", file=sys.stderr, flush=True)


def _component() -> None:
    async def build() -> None:
        workers = WorkerPool(key=KEY, cache=cache_folder("wasi"))
        await workers.prepare()
        await workers.close()

    asyncio.run(build())


if __name__ == "__main__":
    main()
