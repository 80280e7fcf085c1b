"""`/commit --check COMMAND`: the command runs in the sandbox over what is staged, and decides whether it is committed."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, runs, terminal

from holdfast.commands import probe_sandbox

POLICY = """\
policy: asking
rules:
  - {name: read, allow: "*", roles: [read-path], inside: true}
  - {name: stage, stage: world.write, inside: true}
  - {name: run, allow: shell.run}
"""


@pytest.fixture(autouse=True)
async def _sandbox(tmp_path: Path) -> None:
    if (await probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")


def test_staged_changes_are_committed_if_the_check_passes_on_them_and_the_agent_knows(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('a.txt', 'w').write('new\\n')"), "Done.")
    (tmp_path / "asking.yaml").write_text(POLICY)
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("write it\r")
        assert user.wait_for("1 staged (/diff")
        user.type("/commit --check 'grep -q old a.txt'\r")
        assert user.wait_for("nothing was committed: grep -q old a.txt exited with 1")
        assert (tmp_path / "work" / "a.txt").read_text() == "precious\n"
        user.type("/commit --check 'sleep 600'\r")
        assert user.wait_for("/commit: shell.run, Ctrl-C stops it")
        start = len(user.seen)
        user.type("/commit --check ")
        user.type("\x03")
        assert user.wait_for("cancelled ")
        assert "--check" not in user.seen[start : user.seen.index("cancelled ", start)], "it is not echoed"
        assert user.wait_for("nothing was committed: sleep 600 was stopped")
        user.type("'grep -q new a.txt'\r")
        assert user.wait_for("commit  a.txt")
        assert user.end("\x04") == 0
    assert (tmp_path / "work" / "a.txt").read_text() == "new\n"
    shown = json.loads(holdfast("show", "--events", "--json", home=tmp_path).stdout)["events"]
    results = [each["event"].get("result") for each in shown]
    codes = [each["code"] for each in results if isinstance(each, dict) and "code" in each]
    assert codes == [1, 0], "both checks are part of the conversation"


def test_a_check_without_a_command_is_refused(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('a.txt', 'w').write('new\\n')"), "Done.")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("write it\r")
        assert user.wait_for("1 staged (/diff")
        user.type("/commit --check\r")
        assert user.wait_for("--check needs a command")
        assert user.end("\x04") == 0
    assert (tmp_path / "work" / "a.txt").read_text() == "precious\n"
