"""A worker that takes a job and never finishes it: arguments are an address and an engine. It prints a line when it has one."""

import asyncio
import sys

from holdfast.core import SessionId
from holdfast.worker import open_dispatch


async def main(url: str, engine: str) -> None:
    async def handle(session: SessionId) -> None:
        print(session, flush=True)
        await asyncio.Event().wait()

    dispatch = open_dispatch(url, engine=engine, heartbeat_seconds=2.0)
    await dispatch.run(handle, places=2, stop=asyncio.Event())


asyncio.run(main(*sys.argv[1:]))
