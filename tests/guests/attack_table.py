"""Writes docs/security/attacks.md: every attack, against every engine that runs Python, and how it ended.

python -m tests.guests.attack_table
"""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

from tests.guests.engines import KEY, component_cache
from tests.guests.hostile import attack, attacks, disguised, ending
from tests.guests.wasi import watched

from holdfast.guests import Run
from holdfast.guests.wasi import Workers, wasi_engine

PAGE = Path(__file__).parents[2] / "docs" / "security" / "attacks.md"
ENGINES = ("python", "python, unchecked", "wasi")
HEAD = """# Attacks on guests

Written by `python -m tests.guests.attack_table`; the tests run the same attacks and fail on any escape. Each runs in an engine
of its own on a watched host: a secret in the environment, in memory and in a file beside the workspace, a listener on the
loopback, symlinks that lead out, a FIFO and a huge file in the workspace, and a second session that must go on answering.
*unchecked* is the same code as text for `exec`, which the check before the run does not see.

- **refused**: before anything ran. **stopped by an error**: an exception in the guest. **harmless**: ran to its end and got nothing.
- **limit**: a bound of the run. **process ended**: the sandbox's process died, ours did not.
- **ESCAPE**: something got out. There must be none.

"""


async def main() -> None:
    """Run everything and write the page."""
    rows = {
        name: [await _ended(engine, code) for engine in ENGINES] for name, code in sorted(attacks().items())
    }
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(HEAD + _summary(rows) + _table(rows))


def _summary(rows: dict[str, list[str]]) -> str:
    lines = []
    for column, engine in enumerate(ENGINES):
        counted = Counter(row[column] for row in rows.values())
        told = ", ".join(f"{count} {word}" for word, count in counted.most_common())
        lines.append(f"**{engine}**: {len(rows)} attacks, {counted['ESCAPE']} escapes; {told}.\n")
    return "\n".join([*lines, ""])


def _table(rows: dict[str, list[str]]) -> str:
    lines = [f"| attack | {' | '.join(ENGINES)} |", "|---" * (len(ENGINES) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in rows.items()]
    return "\n".join([*lines, ""])


async def _ended(engine: str, code: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        if engine == "wasi":
            watch, ended = await _on_wasi(Path(folder), code)
        else:
            watch, ended = await attack(Path(folder), code if engine == "python" else disguised(code))
        return "ESCAPE" if watch.escapes(ended) else ending(ended)


async def _on_wasi(folder: Path, code: str) -> tuple[watched.Watch, Run]:
    workspace, quiet_place = folder / "workspace", folder / "quiet"
    workspace.mkdir()
    quiet_place.mkdir()
    workers = Workers(key=KEY, cache=component_cache())
    target = wasi_engine(key=KEY, cache=component_cache(), workspace=workspace, workers=workers)
    bystander = wasi_engine(key=KEY, cache=component_cache(), workspace=quiet_place, workers=workers)
    try:
        async with watched.watched(workspace, bystander.guest(), crowd=30) as watch:
            return watch, await watched.attack(target, watch, code)
    finally:
        await target.close()
        await bystander.close()
        await workers.close()


if __name__ == "__main__":
    asyncio.run(main())
