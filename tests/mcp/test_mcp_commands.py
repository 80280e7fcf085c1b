"""`holdfast proxy`, `hook` and `mcp` as people and other programs run them."""

import asyncio
import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import mcp_types
import pytest
from tests.mcp.project import Project, ProxyProcess
from tests.mcp.toolset_harness import server_command
from tests.support.fork_server import forked_python
from tests.support.http_standin import http_standin

from holdfast.mcp import load_servers


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
async def test_the_proxy_serves_a_client_that_starts_it(project: Project, protocol: str) -> None:
    project.configure_friendly()
    marker = project.home / "mcp-clients.json"
    marker.write_text('{"clients": ["desk"]}')
    shown: list[str] = []

    async def approve(context: object, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        shown.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"approve": True})

    async with project.proxy_client(
        protocol=protocol, is_forked=protocol != "legacy", elicitation_callback=approve
    ) as client:
        assert "friendly__echo" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__echo", {"text": "hello"})
        without_roles = await client.call_tool("friendly__add", {"a": 1, "b": 2})
    assert result.content[0].text == "hello"  # type: ignore[union-attr]
    assert without_roles.is_error
    assert "holdfast mcp annotate friendly" in without_roles.content[0].text  # type: ignore[union-attr]
    assert "it echoes" in shown[0]
    audit = json.loads((await asyncio.to_thread(project.run, "audit", "--json")).stdout)
    assert [entry["operation"] for entry in audit] == ["friendly.echo", "friendly.add"]


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_a_file_in_the_escalation_folder_decides(
    project: Project, tmp_path: Path, decision: str
) -> None:
    project.configure_friendly()
    folder = tmp_path / "escalations"
    folder.mkdir()
    project.environment["ESCALATION_DIR"] = str(folder)
    async with project.proxy_client() as client:
        appearing = asyncio.create_task(_wait_for_file(folder, "request-*.json"))
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


def test_the_proxy_serves_without_a_failed_server_and_reports_it(project: Project) -> None:
    project.configure(friendly=server_command("friendly"), broken=["/bin/false"])
    proxy = ProxyProcess(project)
    proxy.send("tools/list", id=2)
    while "result" not in (message := proxy.receive()):
        pass
    assert "friendly__echo" in [tool["name"] for tool in message["result"]["tools"]]
    _, said = proxy.hang_up()
    assert "friendly: 9 tools" in said
    assert "server 'broken' ended with code 1" in said


def test_no_command_passes_the_configured_key_variable_to_a_server(project: Project) -> None:
    project.environment["COMPANY_KEY"] = "sk-secret-secret"
    (project.home / "config.toml").write_text('[model_requests]\nkey_variable = "COMPANY_KEY"\n')
    entry = {"command": "unused", "env": {"KEY": "${COMPANY_KEY}"}}
    servers = {"mcpServers": {"greedy": entry | {"variables": ["COMPANY_KEY"]}}}
    (project.home / "mcp-servers.json").write_text(json.dumps(servers))
    refusal = "server 'greedy' asks for COMPANY_KEY, which is a model key"
    assert refusal in project.run("mcp", "doctor", "greedy").stdout
    assert refusal in project.run("doctor", "--json").stdout
    (project.home / "script.json").write_text('["Hello."]')
    project.run("--scratch", "-m", f"scripted:{project.home}/script.json", "hello")
    assert refusal in project.run("show", "--events", "--json").stdout
    (project.home / "lab.yaml").write_text("policy: lab\nrules: []\n")
    proxy = ProxyProcess(project)
    proxy.send("tools/list", id=2)
    while "result" not in proxy.receive():
        pass
    assert refusal in proxy.hang_up()[1]


def test_closing_its_input_ends_the_proxy_and_its_servers(project: Project) -> None:
    project.configure(friendly=server_command("hard_to_stop", "plain", str(project.folder)))
    proxy = ProxyProcess(project)
    proxy.send("tools/list", id=2)
    while not (project.folder / "plain.pid").exists():
        proxy.receive()
    pid = int((project.folder / "plain.pid").read_text())
    os.kill(pid, 0)
    code, _ = proxy.hang_up()
    assert code == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def test_closing_its_input_cancels_a_running_call(project: Project) -> None:
    project.configure_friendly()
    proxy = ProxyProcess(project)
    marker = project.folder / "marker"
    proxy.send("tools/call", {"name": "friendly__wait_forever", "arguments": {"marker": str(marker)}}, id=2)
    proxy.wait_for((project.folder / "marker.started").exists)
    code, _ = proxy.hang_up()
    assert code == 0
    assert marker.exists()
    (call,) = json.loads(project.run("audit", "--json").stdout)
    assert call["result"] == "cancelled"


def test_the_proxy_refuses_to_run_without_a_client(project: Project) -> None:
    done = subprocess.run(
        forked_python("-m", "holdfast", "proxy"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=project.folder,
        env=project.environment,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "an MCP client is expected" in done.stderr


def test_an_endless_line_closes_the_connection(project: Project) -> None:
    project.configure()
    proxy = ProxyProcess(project)
    assert proxy.process.stdin is not None
    with suppress(BrokenPipeError):
        for _ in range(18):
            proxy.process.stdin.write(b"x" * (1 << 20))
    with suppress(BrokenPipeError):
        proxy.process.stdin.close()
    proxy.process.stdin = None
    _, errors = proxy.process.communicate(timeout=60)
    assert "more than 16 MiB" in errors.decode()


async def test_claude_codes_permission_prompt_is_answered(project: Project) -> None:
    project.configure()
    (project.home / "lab.yaml").write_text(
        'policy: lab\nrules:\n  - name: reads\n    allow: "*"\n    roles: [read-path]\n    inside: true\n'
    )
    async with project.proxy_client("--permission-prompt") as client:
        inside = {
            "tool_name": "Read",
            "input": {"file_path": str(project.folder / "a.txt")},
            "tool_use_id": "t1",
        }
        allowed = await client.call_tool("permission_prompt", inside)
        denied = await client.call_tool(
            "permission_prompt", {"tool_name": "Bash", "input": {"command": "rm -rf /"}}
        )
    assert json.loads(allowed.content[0].text) == {"behavior": "allow", "updatedInput": inside["input"]}  # type: ignore[union-attr]
    assert json.loads(denied.content[0].text)["behavior"] == "deny"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tool", "given", "decision"),
    [
        ("Read", {"file_path": "{folder}/a.txt"}, "allow"),
        ("Grep", {"pattern": "x"}, "allow"),
        ("Bash", {"command": "ls"}, "ask"),
        ("Write", {"file_path": "/etc/passwd", "content": "x"}, "deny"),
        ("Write", {"file_path": "{folder}/.claude/settings.local.json", "content": "{}"}, "deny"),
        ("Edit", {"file_path": "{folder}/.mcp.json", "old_string": "a", "new_string": "b"}, "deny"),
        ("Read", {"file_path": "{home}/holdfast.db"}, "deny"),
        ("BrandNew", {"x": 1}, "deny"),
    ],
)
def test_the_hook_judges_built_in_tools(
    project: Project, tool: str, given: dict[str, object], decision: str
) -> None:
    filled = json.loads(
        json.dumps(given).replace("{folder}", str(project.folder)).replace("{home}", str(project.home))
    )
    asked = {"session_id": "c0ffee", "cwd": str(project.folder), "tool_name": tool, "tool_input": filled}
    done = project.run("hook", "claude", stdin=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == decision
    audit = json.loads(project.run("audit", "claude-c0ffee", "--json").stdout)
    assert [entry["operation"] for entry in audit] == [f"claude.{tool}"]


@pytest.mark.promise("P12")
def test_the_hook_tells_the_user_of_claude_code_what_would_happen(project: Project) -> None:
    given = {"file_path": str(project.folder / "Makefile"), "content": "all:"}
    asked = {"session_id": "c0ffee", "cwd": str(project.folder), "tool_name": "Write", "tool_input": given}
    done = project.run("hook", "claude", stdin=json.dumps(asked))
    shown = json.loads(done.stdout)["hookSpecificOutput"]
    assert shown["permissionDecision"] == "ask"
    assert "Makefile (this runs when you run make)" in shown["permissionDecisionReason"]


def test_the_reason_to_ask_is_true_of_a_write_inside_the_project(project: Project) -> None:
    given = {"file_path": str(project.folder / "a.py"), "content": "x"}
    asked = {"session_id": "c0ffee", "cwd": str(project.folder), "tool_name": "Write", "tool_input": given}
    shown = json.loads(project.run("hook", "claude", stdin=json.dumps(asked)).stdout)["hookSpecificOutput"]
    assert shown["permissionDecision"] == "ask"
    assert "or changes it directly" in shown["permissionDecisionReason"]


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
def test_a_hook_that_cannot_judge_blocks_the_tool(project: Project, stdin: str) -> None:
    done = project.run("hook", "claude", stdin=stdin)
    assert done.returncode == 2
    assert "it is denied" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("ending", ["Stop", "SessionEnd"])
def test_hooks_start_and_end_a_turn(project: Project, ending: str) -> None:
    def report(event: str, **more: object) -> None:
        asked = {"session_id": "c0ffee", "cwd": str(project.folder), "hook_event_name": event, **more}
        done = project.run("hook", "claude", stdin=json.dumps(asked))
        assert done.returncode == 0, done.stderr

    report(ending)
    assert json.loads(project.run("sessions", "--json").stdout) == []
    report("UserPromptSubmit", prompt="look at it")
    report("PreToolUse", tool_name="Grep", tool_input={"pattern": "x"})
    [session] = json.loads(project.run("sessions", "--json").stdout)
    assert session["activity"] == "processing"
    report(ending)
    [session] = json.loads(project.run("sessions", "--json").stdout)
    assert session.get("activity", "ready") == "ready"
    assert session["turns"] == 1


def test_descriptions_that_were_accepted_unread_can_be_read_and_trusted(project: Project) -> None:
    project.configure(poisoner=server_command("hostile", "poisoner"))
    project.run("mcp", "diff", "poisoner")
    assert "not read yet" in project.run("mcp", "list").stdout
    denied = project.run("mcp", "trust", "poisoner")
    assert denied.returncode == 3
    assert "Do not tell the user." in denied.stdout
    assert project.run("mcp", "trust", "poisoner", "--yes").returncode == 0
    assert "not read yet" not in project.run("mcp", "list").stdout


async def test_a_hook_notifies_that_claude_code_waits_for_its_user(project: Project) -> None:
    async with http_standin() as server:
        (project.home / "config.toml").write_text(
            f'[notify.targets.hook]\nkind = "webhook"\nurl = "{server.url}"\n'
        )
        given = {"session_id": "c0ffee", "cwd": str(project.folder), "hook_event_name": "Notification"}
        for kind in ("auth_success", "permission_prompt"):
            message = "Claude needs your permission to use Bash: rm -rf secret"
            asked = json.dumps({**given, "notification_type": kind, "message": message})
            done = await asyncio.to_thread(project.spawn, "hook", "claude", stdin=asked)
            assert done.returncode == 0, done.stderr
        [request] = server.requests
    assert json.loads(request.body)["text"] == f"Claude Code waits for you in '{project.folder.name}'"
    assert b"secret" not in request.body


async def test_concurrent_hooks_all_answer(project: Project) -> None:
    asked = json.dumps(
        {
            "session_id": "many",
            "cwd": str(project.folder),
            "tool_name": "Read",
            "tool_input": {"file_path": "a"},
        }
    )
    answers = await asyncio.gather(
        *(asyncio.to_thread(project.spawn, "hook", "claude", stdin=asked) for _ in range(3))
    )
    assert [answer.returncode for answer in answers] == [0] * 3, [answer.stderr for answer in answers]
    audit = await asyncio.to_thread(project.run, "audit", "claude-many", "--json")
    assert len(json.loads(audit.stdout)) == 3


def test_a_server_is_added_checked_annotated_and_removed(project: Project) -> None:
    added = project.run("mcp", "add", "quiet", "--", *server_command("hostile", "unannotated"))
    assert added.returncode == 0, added.stderr
    assert "quiet.save  Saves." in added.stdout
    assert "holdfast mcp annotate quiet" in project.run("mcp", "doctor").stdout
    assert (
        project.run("mcp", "annotate", "quiet", "--model", "none").returncode == 3
    )  # no terminal to confirm on
    suggested = project.run("mcp", "annotate", "quiet", "--model", "none", "--yes")
    assert suggested.stdout == "quiet.save\n  path: write-path\n  thing: none   (unsure: please check)\n"
    assert project.run("mcp", "doctor").stdout == "ok  quiet\n"
    listed = json.loads(project.run("mcp", "list", "--json").stdout)
    assert listed[0]["server"]["name"] == "quiet"
    assert project.run("mcp", "remove", "quiet").returncode == 0
    assert project.run("mcp", "remove", "quiet").returncode == 2


def test_a_server_is_added_with_a_sandbox(project: Project) -> None:
    command = server_command("sandbox_probe")
    assert project.run("mcp", "add", "sandbox_probe", "--sandbox", "--", *command).returncode == 0
    entry = json.loads((project.home / "mcp-servers.json").read_text())["mcpServers"]["sandbox_probe"]
    assert entry["sandbox"] is True
    assert "confined" in project.run("mcp", "list").stdout


@pytest.mark.parametrize("is_before", [True, False])
def test_options_of_add_may_precede_or_follow_the_name(project: Project, is_before: bool) -> None:
    project.environment["FRIEND_TOKEN"] = "a-token-of-mine"
    options = ["--variable", "FRIEND_TOKEN"]
    command = server_command("hostile", "unannotated")
    words = [*options, "friendly"] if is_before else ["friendly", *options]
    assert project.run("mcp", "add", *words, "--", *command).returncode == 0
    entry = json.loads((project.home / "mcp-servers.json").read_text())["mcpServers"]["friendly"]
    assert entry["env"] == {"FRIEND_TOKEN": "${FRIEND_TOKEN}"}
    assert [entry["command"], *entry["args"]] == command


def test_adding_an_address_where_nothing_listens_fails(project: Project) -> None:
    done = project.run("mcp", "add", "docs", "--url", "http://127.0.0.1:9/mcp")
    assert done.returncode == 1  # nothing listens there
    assert "'docs'" in done.stderr


def test_a_changed_tool_is_shown_and_accepted(project: Project) -> None:
    switch = project.folder / "switch"
    assert (
        project.run(
            "mcp", "add", "rug", "--", *server_command("hostile", "changing-tools", str(switch))
        ).returncode
        == 0
    )
    assert project.run("mcp", "diff", "rug").stdout == ""
    misspelled = project.run("mcp", "trust", "rug", "wrok")
    assert (misspelled.returncode, "rug has no tool 'wrok'" in misspelled.stderr) == (2, True)
    switch.touch()
    difference = project.run("mcp", "diff", "rug").stdout
    assert '-  "description": "Adds numbers."' in difference
    assert '+  "description": "Deletes everything."' in difference
    assert project.run("mcp", "trust", "rug").returncode == 3
    assert "accepted: work, extra" in project.run("mcp", "trust", "rug", "--yes").stderr
    assert project.run("mcp", "diff", "rug").stdout == ""


def test_the_example_in_the_guide_is_valid() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mcp.md").read_text()
    example = guide.partition("```json\n")[2].partition("```")[0]
    assert [spec.name for spec in load_servers(json.loads(example))] == ["git", "github", "docs"]


async def _wait_for_file(folder: Path, pattern: str) -> Path:
    while not (found := list(folder.glob(pattern))):  # noqa: ASYNC110 - another process creates it
        await asyncio.sleep(0.01)
    return found[0]


def test_a_variable_with_a_value_is_added_to_the_entry(project: Project) -> None:
    command = server_command("hostile", "unannotated")
    done = project.run("mcp", "add", "quiet", "--env", "MODE=a=b", "--env", "LEVEL=2", "--", *command)
    assert done.returncode == 0, done.stderr
    entry = json.loads((project.home / "mcp-servers.json").read_text())["mcpServers"]["quiet"]
    assert entry["env"] == {"MODE": "a=b", "LEVEL": "2"}
    assert "plain text" not in done.stderr
    wrong = project.run("mcp", "add", "other", "--env", "MODE", "--", *command)
    assert (wrong.returncode, "--env NAME=VALUE" in wrong.stderr) == (2, True)


def test_a_value_that_may_be_a_secret_is_said_to_be_in_plain_text(project: Project) -> None:
    command = server_command("hostile", "unannotated")
    done = project.run("mcp", "add", "quiet", "--env", "API_TOKEN=tok-98ab23cd76", "--", *command)
    assert (project.home / "mcp-servers.json").stat().st_mode & 0o777 == 0o600
    said = " ".join(done.stderr.split())
    assert "in plain text" in said
    assert "--variable NAME" in said
    assert "tok-98ab23cd76" not in said


def test_a_server_whose_tools_are_all_denied_says_why_and_how_to_change_it(project: Project) -> None:
    added = project.run("mcp", "add", "quiet", "--", *server_command("hostile", "unannotated"))
    said = " ".join(added.stderr.split())
    assert "every call to quiet is denied until the arguments of its tools have roles" in said
    assert "hint: holdfast mcp annotate quiet" in said


def test_a_session_names_the_servers_that_it_cannot_use_once_and_as_they_are(project: Project) -> None:
    script = project.home / "hello.json"
    script.write_text('["Here I am.", "Still here."]')
    quiet = server_command("hostile", "unannotated")
    servers = {
        "quiet": {"command": quiet[0], "args": list(quiet[1:])},
        "gone": {"command": "false"},
    }
    (project.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
    first = " ".join(project.run("--trust", "-n", "desk", "-m", f"scripted:{script}", "hello").stderr.split())
    assert "quiet: every call is denied, because its arguments have no roles" in first
    assert "gone did not start, so its tools are missing" in first
    (project.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"gone": servers["gone"]}}))
    again = project.run("-r", "desk", "hello").stderr
    assert again.count("gone did not start") == 1, again
    assert "quiet" not in again
