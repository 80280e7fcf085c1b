"""Attacks on the sandbox, as an ordinary user and as root, in throwaway namespaces; and each wall is met by an attack."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands.settings import WALLS

ATTACKS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("attacks.json").read_text(encoding="utf-8")
)
BY_ID = {attack["id"]: attack for attack in ATTACKS}
USERS = ("root", "nobody") if os.geteuid() == 0 else ("own",)
BREAKS = {
    "landlock": ("H01",),
    "seccomp": ("S039",),
    "capabilities": ("S025",),
    "limits": ("H23",),
    "read-only": ("H04",),
    "read-only-proc": ("H03",),
    "hidden-processes": ("H02",),
    "hidden-layers": ("S006",),
    "network-namespace": ("H08",),
    "ipc-namespace": ("H09",),
    "no-nested-namespaces": ("H05",),
    "inotify-limit": ("H06",),
    "temporary-size": ("H07",),
    "memory-watch": ("S086",),
    "disk-watch": ("S087",),
    "process-watch": ("H10",),
}
"""The attacks that a wall alone holds off."""
ONLY_ROOT = ("capabilities", "read-only", "read-only-proc", "process-watch")
"""Walls that take away rights which an ordinary user does not have."""


def job(user: str, attacks: list[dict[str, Any]], *without: str) -> dict[str, Any]:
    return {"user": user, "attacks": attacks, "without": without}


def play(folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Play attacks in a process of their own; returns for each job what each attack broke."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("attack_host.py")), str(folder)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(jobs), done.stderr[-3000:]
    if "" in results[0]:
        pytest.skip(results[0][""])
    return results


@pytest.mark.timeout(300)
@pytest.mark.promise("P18")
def test_every_attack_is_held_off(tmp_path: Path) -> None:
    [results] = play(tmp_path, [job(USERS[-1], ATTACKS)])
    assert results.keys() == BY_ID.keys()
    assert {id: broken for id, broken in results.items() if broken} == {}


@pytest.mark.timeout(300)
def test_as_root_the_attacks_that_one_wall_alone_holds_off_are_held_off(tmp_path: Path) -> None:
    ids = sorted({id for each in BREAKS.values() for id in each})
    [results] = play(tmp_path, [job(USERS[0], [BY_ID[id] for id in ids])])
    assert results == dict.fromkeys(results, "")
    assert sorted(results) == ids


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.promise("P18")
def test_as_root_every_attack_is_held_off(tmp_path: Path) -> None:
    [results] = play(tmp_path, [job(USERS[0], ATTACKS)])
    assert results.keys() == BY_ID.keys()
    assert {id: broken for id, broken in results.items() if broken} == {}


@pytest.mark.timeout(300)
@pytest.mark.promise("P18")
def test_without_a_wall_an_attack_succeeds(tmp_path: Path) -> None:
    user = USERS[0]
    walls = [wall for wall in WALLS if user != "own" or wall not in ONLY_ROOT]
    jobs = [job(user, [BY_ID[id] for id in BREAKS[wall]], wall) for wall in walls]
    results = dict(zip(walls, play(tmp_path, jobs), strict=True))
    held = {wall: broken for wall, broken in results.items() if not all(map(is_success, broken.values()))}
    assert held == {}


def is_success(broken: str) -> bool:
    """Whether an attack ran and broke something."""
    return broken != "" and "did not run" not in broken and "no full sandbox" not in broken
