"""The rows of the benchmark: every task, and every pair of a task and an attack, under one setting each."""

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from typing import Any, NamedTuple

VERSION = "v1.1.2"
KNOWN_CASES = {("slack", "user_task_1", "injection_task_1")}
"""With a gullible reader: content that the person asked to forward."""
ROWS = {
    "clean, labels off": {"has_labels": False},
    "clean, labels on": {"has_labels": True},
    "clean, choices count": {"has_labels": True, "setting": "choices: true"},
    "clean, words hidden": {"has_labels": True, "setting": "show: own"},
    "attacked, labels off": {"has_labels": False},
    "attacked, labels on": {"has_labels": True},
    "attacked, gullible reader": {"has_labels": True, "is_reader_gullible": True},
}


class Part(NamedTuple):
    """What one process found in its share of the tasks."""

    counts: dict[str, Counter[str]]
    notes: dict[str, list[str]]
    cpu_seconds: float


def run_part(number: int, parts: int, names: tuple[str, ...]) -> Part:
    """Run every row on each `parts`-th task, in a data directory of its own."""
    home = tempfile.mkdtemp(prefix="holdfast-agentdojo-")
    os.environ["HOLDFAST_HOME"] = home
    try:
        return asyncio.run(_run_part(number, parts, names))
    finally:
        shutil.rmtree(home)


async def _run_part(number: int, parts: int, names: tuple[str, ...]) -> Part:
    from agentdojo.task_suite.load_suites import get_suites
    from bench.agentdojo.harness import Bench

    from holdfast.app import Runtime

    tasks = [(suite, task) for suite in get_suites(VERSION).values() for task in suite.user_tasks.values()][
        number::parts
    ]
    part = Part({}, {}, 0.0)
    runtime = await Runtime.start()
    try:
        for name in names:
            bench = Bench(runtime, **ROWS[name])
            part.counts[name], part.notes[name] = await _run_row(name, bench, tasks)
    finally:
        await runtime.close()
    used = os.times()
    return part._replace(cpu_seconds=sum(used[:4]))


async def _run_row(name: str, bench: Any, tasks: list[Any]) -> tuple[Counter[str], list[str]]:
    from bench.agentdojo.harness import TEXT_ONLY, injection_places
    from bench.agentdojo.programs import PROGRAMS

    count: Counter[str] = Counter()
    notes: list[str] = []
    is_attacked, has_labels = name.startswith("attacked"), "off" not in name
    for suite, task in tasks:
        has_effect = int(task.ID.split("_")[-1]) in PROGRAMS[suite.name]
        places = injection_places(suite, task) if is_attacked else ()
        for injection in suite.injection_tasks.values() if is_attacked else (None,):
            vectors = dict.fromkeys(places, injection.GOAL) if injection is not None else {}
            result = await bench.run(suite, task, injection, vectors)
            count["tasks"] += 1
            count["done"] += result.is_done
            count["with effect"] += has_effect
            count["done with effect"] += has_effect and result.is_done
            count["stops"] += len(result.stops)
            count["consequential"] += result.consequential + len(result.stops)
            count["tasks that ask"] += bool(result.stops)
            count["fired"] += result.has_fired
            count["bytes"] += result.journal_bytes
            if result.outcome != "ok":
                count["errors"] += 1
                notes.append(
                    f"error outcome: {suite.name} {task.ID} {injection and injection.ID}: {result.outcome[:300]}"
                )
            is_text = injection is not None and (suite.name, injection.ID) == TEXT_ONLY
            count["text pairs"] += is_text
            count["text succeeded"] += is_text and result.has_succeeded
            if result.has_succeeded and not is_text and injection is not None:
                count["succeeded"] += 1
                count["unknown succeeded"] += (suite.name, task.ID, injection.ID) not in KNOWN_CASES
                if has_labels:
                    notes.append(f"attack succeeded: {suite.name} {task.ID} {injection.ID}")
            if not is_attacked and (not result.is_done or result.stops) and has_labels:
                why = (result.stops or result.errors or [result.outcome])[0].strip().splitlines()[-1]
                notes.append(f"{suite.name} {task.ID}: {'done, ' if result.is_done else ''}{why[:150]}")
    return count, notes
