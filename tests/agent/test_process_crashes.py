"""A process killed after any event of a turn: the next one ends the same, asking and doing nothing twice."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.fork_server import forked_python

END = {"outcome": "proposed", "value": "All done.", "proposals": ["a.txt"]}


@pytest.mark.parametrize(("engine", "step"), [("scripted", 9), ("python", 13)])
def test_a_turn_survives_the_death_of_its_process(engine: str, step: int, tmp_path: Path) -> None:
    check(engine, step, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["scripted", "python"])
def test_a_turn_survives_the_death_of_its_process_after_every_event(engine: str, tmp_path: Path) -> None:
    check(engine, 1, tmp_path)


def check(engine: str, step: int, folder: Path) -> None:
    command = forked_python("-m", "tests.agent.crash_main", str(folder), engine, str(step))
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *cuts, whole = [json.loads(line) for line in done.stdout.splitlines()]
    assert whole["died"] == 0, "the last one was let live"
    assert whole["outcomes"] == [END]
    assert len(cuts) >= len(whole["kinds"]) // step
    posted = whole["kinds"].index("MessagePosted") + 1
    for each in cuts:
        assert each["again"] == 0, f"after event {each['cut']}"
        if each["cut"] >= posted:
            check_cut(each, whole)


def check_cut(cut: dict[str, object], whole: dict[str, object]) -> None:
    where = f"cut after event {cut['cut']}"
    assert isinstance(cut["sent"], list)
    assert cut["asked"] == whole["asked"], f"{where}: the model is asked once for each reply"
    assert len(cut["sent"]) == len(set(cut["sent"])), f"{where}: no mail is sent twice"
    if cut["unknown"]:  # a mail was in flight: its outcome is unknown, and the code ends with that error
        assert set(cut["sent"]) < {"one", "two", "three"}, where
        assert len(cut["outcomes"]) == 1, where  # type: ignore[arg-type]
        return
    for what in ("outcomes", "sent", "files", "staged"):
        assert cut[what] == whole[what], f"{where}: {what}"
