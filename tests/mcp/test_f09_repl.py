"""Seed 000's example at the terminal: the agent asks to read /etc/hostname with MCP's own filesystem server, the person approves."""

import json
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, runs, terminal
from tests.cli.test_approvals import QUESTION, press
from tests.mcp.installed import filesystem_server
from tests.mcp.test_f09_approved_roots import ASKING

READ = runs("print(filesystem.read_text_file(path='/etc/hostname')['content'])")


def test_a_file_outside_is_read_by_the_real_server_after_a_key_at_the_terminal(tmp_path: Path) -> None:
    words = prepared(tmp_path, READ, "That is the name.")
    (tmp_path / "asking.yaml").write_text(ASKING)
    (tmp_path / "holdfast").mkdir(mode=0o700)
    server = {"command": filesystem_server(), "args": [str(tmp_path / "work")]}
    (tmp_path / "holdfast" / "mcp-servers.json").write_text(
        json.dumps({"mcpServers": {"filesystem": server}})
    )
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("what is this machine called?\r")
        assert user.wait_for("The agent wants to read /etc/hostname")
        assert user.wait_for(QUESTION)
        press(user, "y", "answer  approved (once), by terminal")
        assert user.wait_for("That is the name.")
        assert user.end("\x04") == 0
    recorded = json.loads(holdfast("show", "--events", "--json", home=tmp_path).stdout)["events"]
    printed = "".join(each["event"].get("printed", "") for each in recorded)
    assert printed.strip() == Path("/etc/hostname").read_text().strip()
