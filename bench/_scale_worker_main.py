"""A worker process under measurement: an address, a folder, its places and how long its model takes to answer."""

import asyncio
import signal
import sys
from pathlib import Path

from bench.turn import ALLOW, InstantModel
from holdfast.app import Runtime
from holdfast.core import SessionId, SystemClock
from holdfast.models import OnPiece, Prompt, Reply
from holdfast.session import Session, Settings
from holdfast.store import Home, open_work_store
from holdfast.worker import Worker, open_dispatch


class PacedModel(InstantModel):
    """Takes as long to answer as it is told."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        await asyncio.sleep(self._seconds)
        return await super().ask(prompt, on_piece)


async def main(url: str, folder: Path, places: int, seconds: float) -> None:
    """Work until SIGTERM."""
    store = await open_work_store(Home(folder), url, clock=SystemClock())
    settings = Settings(acts_with="tools", restore_points="never")
    runtime = await Runtime.start(home=folder, settings=settings, store=store, servers=())

    async def resume(session: SessionId) -> Session:
        return await runtime.resume(session, model=PacedModel(seconds), policy=ALLOW)

    assert runtime.posted_requests is not None
    worker = Worker(
        store=store,
        dispatch=open_dispatch(url),
        resume=resume,
        requests=runtime.posted_requests,
        drain_seconds=0,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    print("ready", flush=True)
    await worker.run(places=places)
    await runtime.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
