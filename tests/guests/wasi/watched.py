"""A host with secrets, monitored while hostile code runs.

A secret is in the environment, in this module and in a file next to the workspace; a listener waits on the loopback address. The
workspace contains symlinks that lead out, a FIFO, a file of two gigabytes and a folder of many files, all created by the host. A
second guest keeps answering, and the longest pause of the event loop is measured.
"""

import asyncio
import contextlib
import json
import os
import resource
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.guests.wasi.running import run

from holdfast.core import Answer, Failed, JsonObject, Returned, Tool
from holdfast.guests import Engine, Guest, GuestLimits, Run, RunRequest

HOST_MARK = f"mark-{secrets.token_hex(8)}"
LIMITS = GuestLimits(seconds=2, wall_seconds=4, memory_bytes=256 << 20, calls=1000)
F = Tool(name="f", parameters={"properties": {"n": {}}})


@dataclass
class Watch:
    """What the host observed while an attack ran."""

    outside: Path
    tag: str
    port: int
    secret: str
    connections: int = 0
    answers: int = 0
    longest_gap: float = 0.0
    grown_bytes: int = 0
    before: set[str] = field(default_factory=set)

    def escapes(self, ended: Run) -> list[str]:
        """Every way in which the attack got out; empty when it did not."""
        text = f"{ended.value} {ended.printed} {ended.error}"
        found = [f"returned {word!r}" for word in (self.secret, HOST_MARK, "root:x:0") if word in text]
        found += [f"created {name}" for name in set(os.listdir(self.outside)) - self.before]
        if Path(f"/tmp/pwned_{self.tag}").exists():
            found.append("wrote to /tmp")
        if self.connections:
            found.append(f"connected {self.connections} times")
        return found


async def f(operation: str, arguments: JsonObject) -> Answer:
    """The tool that the attacks call: doubles a number, fails on anything else."""
    n = arguments.get("n")
    return (
        Returned(value=n * 2)
        if isinstance(n, int)
        else Failed(error="TypeError", reason="n must be a number")
    )


def attacks() -> dict[str, str]:
    """Every attack by name. Some files have an expression that evaluates to the source."""
    data = Path(__file__).parent.parent / "data"
    sources = {
        **json.loads((data / "guest-attacks.json").read_text()),
        **json.loads((data / "python-gadgets.json").read_text()),
    }
    return {
        name: code if isinstance(code, str) else eval(code["source_is"]) for name, code in sources.items()
    }


def furnish(workspace: Path, outside: Path, *, crowd: int) -> None:
    """Create symlinks, a FIFO and large files in a workspace."""
    outside.mkdir()
    (workspace / "link_etc").symlink_to("/etc")
    (workspace / "link_up").symlink_to(f"../{outside.name}")
    (workspace / "link_rel").symlink_to(f"../{outside.name}/secret.txt")
    os.mkfifo(workspace / "fifo")
    with (workspace / "sparse2g").open("wb") as file:
        file.truncate(2 << 30)
    for name in ("sub", "many"):
        (workspace / name).mkdir()
    for number in range(crowd):
        (workspace / "many" / str(number)).touch()


@contextlib.asynccontextmanager
async def watched(workspace: Path, bystander: Guest, *, crowd: int = 300) -> AsyncIterator[Watch]:
    """Furnish the workspace and monitor the host until the block ends."""
    outside = workspace.parent / "outside"
    furnish(workspace, outside, crowd=crowd)
    secret, tag = secrets.token_hex(16), secrets.token_hex(4)
    (outside / "secret.txt").write_text(secret)
    os.environ["HOST_SECRET"] = secret

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        watch.connections += 1
        writer.close()

    listener = await asyncio.start_server(meet, "127.0.0.1", 0)
    watch = Watch(outside=outside, tag=tag, port=listener.sockets[0].getsockname()[1], secret=secret)
    watch.before = set(os.listdir(outside))
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tasks = [asyncio.create_task(_measure_pauses(watch)), asyncio.create_task(_keep_asking(watch, bystander))]
    try:
        yield watch
        watch.grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss) * 1024
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        listener.close()
        await listener.wait_closed()
        del os.environ["HOST_SECRET"]


async def attack(engine: Engine, watch: Watch, code: str) -> Run:
    """Run one attack in a new guest."""
    source = (
        code.replace("{OUT}", str(watch.outside))
        .replace("{TAG}", watch.tag)
        .replace("{PORT}", str(watch.port))
    )
    if "{{" in source:  # written for str.format
        source = source.replace("{{", "{").replace("}}", "}")
    guest = engine.guest()
    ended = await guest.run(RunRequest(code=source, tools=(F,), limits=LIMITS), f)
    await guest.close()
    return ended


async def _measure_pauses(watch: Watch) -> None:
    """Measure the pauses of the loop, without the time for which other processes had the processor."""
    loop = asyncio.get_running_loop()
    last, last_waited = loop.time(), _seconds_without_processor()
    while True:
        await asyncio.sleep(0.01)
        now, waited = loop.time(), _seconds_without_processor()
        watch.longest_gap = max(watch.longest_gap, (now - last) - (waited - last_waited))
        last, last_waited = now, waited


def _seconds_without_processor() -> float:
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


async def _keep_asking(watch: Watch, bystander: Guest) -> None:
    while True:
        assert (await run(bystander, "6 * 7")).value == 42
        watch.answers += 1
        await asyncio.sleep(0.02)
