"""Writes docs/security/attacks.md and the table in SECURITY.md: how every attack on every engine ended.

python -m tests.guests.attack_table
"""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.guests.engines import KEY, component_cache
from tests.guests.hostile import attack, attacks, disguised, ending
from tests.guests.lisp.attacks import attack_in_lisp, lisp_attacks
from tests.guests.wasi import watched

from holdfast.guests import Run
from holdfast.guests.wasi import WorkerPool, wasi_engine

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security" / "attacks.md"
SECURITY = ROOT / "SECURITY.md"
PYTHONS = ("python", "python, unchecked", "wasi")
ENDINGS = ("refused", "stopped by an error", "harmless", "limit", "process ended", "ESCAPE")
HEAD = """# Attacks on guests

`python -m tests.guests.attack_table` generates this page. The tests run the same attacks and fail on any escape. Each attack runs in
its own engine on a monitored host: a secret in the environment, in memory and in a file next to the workspace, a listener on the
loopback address, symlinks that lead out, a FIFO and a huge file in the workspace, and a second session that must keep answering.
*unchecked* is the same code as text for `exec`, which the check before the run does not see. One host process runs all attacks on
this page, so the page exists only if none of them crashed it.

- **refused**: before anything ran. **stopped by an error**: an exception in the guest. **harmless**: ran to the end and gained nothing.
- **limit**: a limit of the run. **process ended**: the sandbox's process died, the host did not.
- **ESCAPE**: something got out. There must be none.

"""
Table = dict[str, dict[str, str]]
"""How each attack ended, by engine and name."""


async def main() -> None:
    """Run every attack and write both files."""
    table: Table = {engine: {} for engine in (*PYTHONS, "lisp")}
    for name, code in sorted(attacks().items()):
        for engine in PYTHONS:
            table[engine][name] = await _ended(engine, code)
    for name, code in lisp_attacks().items():
        table["lisp"][name] = await _ended("lisp", code)
    PAGE.write_text(HEAD + summary(table) + _python_table(table) + "\n" + _lisp_table(table))
    SECURITY.write_text(with_summary(SECURITY.read_text(), summary(table)))


def summary(table: Table) -> str:
    """One line for each engine: how many attacks ended how."""
    lines = [f"| engine | attacks | {' | '.join(ENDINGS)} |", "|---" * (len(ENDINGS) + 2) + "|"]
    for engine, rows in table.items():
        counted = Counter(rows.values())
        lines.append(f"| {engine} | {len(rows)} | {' | '.join(str(counted[word]) for word in ENDINGS)} |")
    return "\n".join([*lines, "", ""])


def with_summary(text: str, table: str) -> str:
    """The text with its table of attacks replaced."""
    return re.sub(r"\| engine \| attacks .*?\n\n", lambda _: table, text, flags=re.DOTALL)


def _python_table(table: Table) -> str:
    lines = [f"| attack | {' | '.join(PYTHONS)} |", "|---" * (len(PYTHONS) + 1) + "|"]
    for name in table["python"]:
        lines.append(f"| {name} | {' | '.join(table[engine][name] for engine in PYTHONS)} |")
    return "\n".join([*lines, ""])


def _lisp_table(table: Table) -> str:
    lines = ["| attack in Lisp | lisp |", "|---|---|"]
    lines += [f"| {name} | {ended} |" for name, ended in table["lisp"].items()]
    return "\n".join([*lines, ""])


async def _ended(engine: str, code: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        watch, ended = await _RUN[engine](Path(folder), code)
        return "ESCAPE" if watch.escapes(ended) else ending(ended)


async def _unchecked(folder: Path, code: str) -> tuple[watched.Watch, Run]:
    return await attack(folder, disguised(code))


async def _on_wasi(folder: Path, code: str) -> tuple[watched.Watch, Run]:
    workspace, quiet_folder = folder / "workspace", folder / "quiet"
    workspace.mkdir()
    quiet_folder.mkdir()
    workers = WorkerPool(key=KEY, cache=component_cache())
    target = wasi_engine(key=KEY, cache=component_cache(), workspace=workspace, workers=workers)
    bystander = wasi_engine(key=KEY, cache=component_cache(), workspace=quiet_folder, workers=workers)
    try:
        async with watched.watched(workspace, bystander.guest(), crowd=30) as watch:
            return watch, await watched.attack(target, watch, code)
    finally:
        await target.close()
        await bystander.close()
        await workers.close()


_RUN: dict[str, Callable[[Path, str], Awaitable[tuple[watched.Watch, Run]]]] = {
    "python": attack,
    "python, unchecked": _unchecked,
    "wasi": _on_wasi,
    "lisp": attack_in_lisp,
}

if __name__ == "__main__":
    asyncio.run(main())
