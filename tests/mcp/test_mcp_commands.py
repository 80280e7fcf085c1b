"""`holdfast proxy`, `hook` and `mcp` as people and other programs run them: as processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import mcp_types
import pytest
from tests.mcp.bench import SERVERS
from tests.mcp.place import FRIENDLY, Place, Raw

from holdfast.mcp import load_servers


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_proxy_serves_a_client_that_starts_it(place: Place, era: str) -> None:
    place.configure(friendly=FRIENDLY)
    marker = place.home / "mcp-clients.json"
    marker.write_text('{"clients": ["desk"]}')
    shown: list[str] = []

    async def yes(context: object, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        shown.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"approve": True})

    async with place.proxied(era=era, elicitation_callback=yes) as client:
        assert "friendly__echo" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__echo", {"text": "hello"})
        without_roles = await client.call_tool("friendly__add", {"a": 1, "b": 2})
    assert result.content[0].text == "hello"  # type: ignore[union-attr]
    assert without_roles.is_error
    assert "holdfast mcp annotate friendly" in without_roles.content[0].text  # type: ignore[union-attr]
    assert "it echoes" in shown[0]
    audit = json.loads((await asyncio.to_thread(place.run, "audit", "--json")).stdout)
    assert [entry["operation"] for entry in audit] == ["friendly.echo", "friendly.add"]


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_a_file_in_the_escalation_folder_decides(place: Place, tmp_path: Path, decision: str) -> None:
    place.configure(friendly=FRIENDLY)
    folder = tmp_path / "escalations"
    folder.mkdir()
    place.environment["ESCALATION_DIR"] = str(folder)
    async with place.proxied() as client:
        appearing = asyncio.create_task(_appearing(folder, "request-*.json"))
        calling = asyncio.create_task(client.call_tool("friendly__echo", {"text": "hello"}))
        request = await appearing
        asked = json.loads(request.read_text())
        assert (asked["serverName"], asked["toolName"]) == ("friendly", "echo")
        draft = folder / "answer"
        draft.write_text(json.dumps({"decision": decision}))
        draft.rename(folder / f"response-{asked['escalationId']}.json")
        result = await calling
    assert result.is_error == (decision == "denied")
    assert (result.content[0].text == "hello") == (decision == "approved")  # type: ignore[union-attr]
    assert list(folder.iterdir()) == []


def test_the_proxy_serves_without_the_server_that_failed_and_says_so(place: Place) -> None:
    place.configure(friendly=FRIENDLY, broken=["/bin/false"])
    proxy = Raw(place)
    proxy.say("tools/list", id=2)
    while "result" not in (message := proxy.hear()):
        pass
    assert "friendly__echo" in [tool["name"] for tool in message["result"]["tools"]]
    _, said = proxy.hang_up()
    assert "friendly: 9 tools" in said
    assert "server 'broken' ended with code 1" in said


def test_no_server_is_given_the_variable_that_the_configuration_names_for_the_key(place: Place) -> None:
    place.environment["COMPANY_KEY"] = "sk-secret-secret"
    (place.home / "config.toml").write_text('[asking]\nkey_variable = "COMPANY_KEY"\n')
    entry = {"command": FRIENDLY[0], "args": FRIENDLY[1:], "env": {"KEY": "${COMPANY_KEY}"}}
    servers = {"mcpServers": {"greedy": entry | {"variables": ["COMPANY_KEY"]}}}
    (place.home / "mcp-servers.json").write_text(json.dumps(servers))
    refusal = "server 'greedy' asks for COMPANY_KEY, which is a key of ours"
    assert refusal in place.run("mcp", "doctor", "greedy").stdout
    assert refusal in place.run("doctor", "--json").stdout
    (place.home / "script.json").write_text('["Hello."]')
    place.run("-m", f"scripted:{place.home}/script.json", "hello")
    assert refusal in place.run("show", "--events", "--json").stdout
    (place.home / "lab.yaml").write_text("policy: lab\nrules: []\n")
    proxy = Raw(place)
    proxy.say("tools/list", id=2)
    while "result" not in proxy.hear():
        pass
    assert refusal in proxy.hang_up()[1]


def test_the_end_of_its_input_ends_the_proxy_and_its_servers_at_once(place: Place) -> None:
    place.configure(friendly=[sys.executable, str(SERVERS / "clinging.py"), "plain", str(place.folder)])
    proxy = Raw(place)
    proxy.say("tools/list", id=2)
    while not (place.folder / "plain.pid").exists():
        proxy.hear()
    pid = int((place.folder / "plain.pid").read_text())
    os.kill(pid, 0)
    code, _ = proxy.hang_up()
    assert code == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def test_the_end_of_its_input_ends_a_call_under_way_and_its_server(place: Place) -> None:
    place.configure(friendly=FRIENDLY)
    proxy = Raw(place)
    marker = place.folder / "marker"
    proxy.say("tools/call", {"name": "friendly__wait_forever", "arguments": {"marker": str(marker)}}, id=2)
    begun = place.folder / "marker.begun"
    while not begun.exists():
        assert proxy.process.poll() is None
    code, _ = proxy.hang_up()
    assert code == 0
    assert marker.exists()
    (call,) = json.loads(place.run("audit", "--json").stdout)
    assert call["result"] == "cancelled"


def test_without_a_client_the_proxy_says_so(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "proxy"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=place.folder,
        env=place.environment,
        check=False,
        timeout=50,
    )
    assert done.returncode == 2
    assert "an MCP client is expected" in done.stderr


def test_a_line_without_end_is_not_kept(place: Place) -> None:
    place.configure()
    proxy = Raw(place)
    assert proxy.process.stdin is not None
    with suppress(BrokenPipeError):
        for _ in range(18):
            proxy.process.stdin.write(b"x" * (1 << 20))
    with suppress(BrokenPipeError):
        proxy.process.stdin.close()
    proxy.process.stdin = None
    _, errors = proxy.process.communicate(timeout=10)
    assert "more than 16 MiB" in errors.decode()


async def test_claude_codes_permission_prompt_is_answered(place: Place) -> None:
    place.configure()
    (place.home / "lab.yaml").write_text(
        'policy: lab\nrules:\n  - name: reads\n    allow: "*"\n    roles: [read-path]\n    inside: true\n'
    )
    async with place.proxied("--permission-prompt") as client:
        inside = {
            "tool_name": "Read",
            "input": {"file_path": str(place.folder / "a.txt")},
            "tool_use_id": "t1",
        }
        yes = await client.call_tool("permission_prompt", inside)
        no = await client.call_tool(
            "permission_prompt", {"tool_name": "Bash", "input": {"command": "rm -rf /"}}
        )
    assert json.loads(yes.content[0].text) == {"behavior": "allow", "updatedInput": inside["input"]}  # type: ignore[union-attr]
    assert json.loads(no.content[0].text)["behavior"] == "deny"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tool", "given", "decision"),
    [
        ("Read", {"file_path": "{folder}/a.txt"}, "allow"),
        ("Grep", {"pattern": "x"}, "allow"),
        ("Bash", {"command": "ls"}, "ask"),
        ("Write", {"file_path": "/etc/passwd", "content": "x"}, "deny"),
        ("Read", {"file_path": "{home}/holdfast.db"}, "deny"),
        ("BrandNew", {"x": 1}, "deny"),
    ],
)
def test_the_hook_judges_built_in_tools(
    place: Place, tool: str, given: dict[str, object], decision: str
) -> None:
    filled = json.loads(
        json.dumps(given).replace("{folder}", str(place.folder)).replace("{home}", str(place.home))
    )
    asked = {"session_id": "c0ffee", "cwd": str(place.folder), "tool_name": tool, "tool_input": filled}
    done = place.run("hook", "claude", stdin=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == decision
    audit = json.loads(place.run("audit", "claude-c0ffee", "--json").stdout)
    assert [entry["operation"] for entry in audit] == [f"claude.{tool}"]


@pytest.mark.parametrize(
    "stdin",
    [
        "",
        "{",
        "[]",
        '{"tool_name": "Bash"}',
        '{"session_id": "../x", "cwd": "/", "tool_name": "Bash", "tool_input": {}}',
    ],
)
def test_a_hook_that_cannot_judge_blocks(place: Place, stdin: str) -> None:
    done = place.run("hook", "claude", stdin=stdin)
    assert done.returncode == 2
    assert "so it is denied" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("ending", ["Stop", "SessionEnd"])
def test_a_turn_that_the_hook_was_told_of_ends_when_it_is_told_so(place: Place, ending: str) -> None:
    def told(event: str, **more: object) -> None:
        asked = {"session_id": "c0ffee", "cwd": str(place.folder), "hook_event_name": event, **more}
        done = place.run("hook", "claude", stdin=json.dumps(asked))
        assert done.returncode == 0, done.stderr

    told(ending)
    assert json.loads(place.run("sessions", "--json").stdout) == []
    told("UserPromptSubmit", prompt="look at it")
    told("PreToolUse", tool_name="Grep", tool_input={"pattern": "x"})
    [session] = json.loads(place.run("sessions", "--json").stdout)
    assert session["activity"] == "processing"
    told(ending)
    [session] = json.loads(place.run("sessions", "--json").stdout)
    assert session.get("activity", "ready") == "ready"
    assert session["turns"] == 1


async def test_hooks_asked_at_the_same_time_all_answer(place: Place) -> None:
    asked = json.dumps(
        {
            "session_id": "many",
            "cwd": str(place.folder),
            "tool_name": "Read",
            "tool_input": {"file_path": "a"},
        }
    )
    answers = await asyncio.gather(
        *(asyncio.to_thread(place.spawn, "hook", "claude", stdin=asked) for _ in range(3))
    )
    assert [answer.returncode for answer in answers] == [0] * 3, [answer.stderr for answer in answers]
    audit = await asyncio.to_thread(place.run, "audit", "claude-many", "--json")
    assert len(json.loads(audit.stdout)) == 3


def test_a_server_is_added_looked_at_annotated_and_removed(place: Place) -> None:
    added = place.run("mcp", "add", "quiet", "--", sys.executable, str(SERVERS / "hostile.py"), "quiet")
    assert added.returncode == 0, added.stderr
    assert "quiet.save  Saves." in added.stdout
    assert "holdfast mcp annotate quiet" in place.run("mcp", "doctor").stdout
    assert place.run("mcp", "annotate", "quiet", "--model", "none").returncode == 3  # nobody there to confirm
    proposed = place.run("mcp", "annotate", "quiet", "--model", "none", "--yes")
    assert proposed.stdout == "quiet.save\n  path: write-path\n  thing: none   (unsure: please check)\n"
    assert place.run("mcp", "doctor").stdout == "ok  quiet\n"
    listed = json.loads(place.run("mcp", "list", "--json").stdout)
    assert listed[0]["server"]["name"] == "quiet"
    assert place.run("mcp", "remove", "quiet").returncode == 0
    assert place.run("mcp", "remove", "quiet").returncode == 2


def test_a_server_is_added_confined(place: Place) -> None:
    script = str(SERVERS / "probing.py")
    assert place.run("mcp", "add", "probing", "--sandbox", "--", sys.executable, script).returncode == 0
    entry = json.loads((place.home / "mcp-servers.json").read_text())["mcpServers"]["probing"]
    assert entry["sandbox"] is True
    assert "confined" in place.run("mcp", "list").stdout


@pytest.mark.parametrize("is_before", [True, False])
def test_options_of_add_stand_before_the_name_or_after_it(place: Place, is_before: bool) -> None:
    place.environment["FRIEND_TOKEN"] = "a-token-of-mine"
    options = ["--variable", "FRIEND_TOKEN"]
    words = [*options, "friendly"] if is_before else ["friendly", *options]
    assert place.run("mcp", "add", *words, "--", *FRIENDLY).returncode == 0
    entry = json.loads((place.home / "mcp-servers.json").read_text())["mcpServers"]["friendly"]
    assert entry["env"] == {"FRIEND_TOKEN": "${FRIEND_TOKEN}"}
    assert [entry["command"], *entry["args"]] == FRIENDLY


def test_a_server_is_added_by_its_address(place: Place) -> None:
    done = place.run("mcp", "add", "docs", "--url", "http://127.0.0.1:9/mcp")
    assert done.returncode == 1  # it is asked for, and nobody is there
    assert "'docs'" in done.stderr


def test_a_changed_tool_is_shown_and_accepted(place: Place) -> None:
    switch = place.folder / "switch"
    assert (
        place.run(
            "mcp", "add", "rug", "--", sys.executable, str(SERVERS / "hostile.py"), "rug", str(switch)
        ).returncode
        == 0
    )
    assert place.run("mcp", "diff", "rug").stdout == ""
    misspelt = place.run("mcp", "trust", "rug", "wrok")
    assert (misspelt.returncode, "rug has no tool 'wrok'" in misspelt.stderr) == (2, True)
    switch.touch()
    difference = place.run("mcp", "diff", "rug").stdout
    assert '-  "description": "Adds numbers."' in difference
    assert '+  "description": "Deletes everything."' in difference
    assert place.run("mcp", "trust", "rug").returncode == 3
    assert "accepted: work, extra" in place.run("mcp", "trust", "rug", "--yes").stderr
    assert place.run("mcp", "diff", "rug").stdout == ""


def test_the_example_in_the_guide_is_understood() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mcp.md").read_text()
    example = guide.partition("```json\n")[2].partition("```")[0]
    assert [spec.name for spec in load_servers(json.loads(example))] == ["git", "github", "docs"]


async def _appearing(folder: Path, pattern: str) -> Path:
    while not (found := list(folder.glob(pattern))):  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    return found[0]
