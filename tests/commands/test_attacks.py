"""Attacks on the sandbox, as an ordinary user and as root, in throwaway namespaces; and each wall is met by an attack."""

import json
import os
import subprocess
import sys
from functools import cache
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


def play(
    folder: Path, user: str, attacks: list[dict[str, Any]], without: tuple[str, ...] = ()
) -> dict[str, str]:
    """Play attacks in a process of their own; returns what each broke."""
    request = {"user": user, "attacks": attacks, "without": without}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("attack_host.py")), str(folder)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.stdout, done.stderr[-3000:]
    results: dict[str, str] = json.loads(done.stdout)
    if "" in results:
        pytest.skip(results[""])
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def of(user: str) -> dict[str, str]:
        return play(tmp_path_factory.mktemp("attacks"), user, ATTACKS)

    return of


@pytest.mark.timeout(300)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", BY_ID)
def test_an_attack_is_held_off(attack: str, user: str, results: Any) -> None:
    assert results(user)[attack] == "", BY_ID[attack]["must_not"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("wall", WALLS)
def test_without_a_wall_an_attack_succeeds(wall: str, tmp_path: Path) -> None:
    user = USERS[0]
    if user == "own" and wall in ("capabilities", "read-only", "read-only-proc", "process-watch"):
        pytest.skip("an ordinary user has none of the rights that this wall takes away")
    attacks = [BY_ID[id] for id in BREAKS[wall]]
    assert all(play(tmp_path, user, attacks, (wall,)).values())
