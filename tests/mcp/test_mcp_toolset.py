"""The toolset of one server: its results, its environment, its restarts."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.mcp.memory_transport import greeting_server
from tests.mcp.toolset_harness import SERVERS, OpenToolset, spec_for

from holdfast.core import FakeClock
from holdfast.core.errors import InvalidConfig, ToolFailed, ToolTimeout
from holdfast.mcp import McpToolset, Pins, Progressed, ServerFailed, ServerSpec, ServerStarted, start_servers
from holdfast.mcp.proxy.http import serve_http
from holdfast.models import key_variables


async def test_the_first_call_starts_the_server(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly"))
    assert friendly.notifications == []
    assert await friendly.call("add", a=2, b=3) == {"result": 5}
    assert friendly.toolset.is_running
    assert isinstance(friendly.notifications[0], ServerStarted)


async def test_tools_are_named_after_their_server(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly", name="other-name"))
    await friendly.toolset.start()
    assert "other-name.add" in [tool.name for tool in friendly.toolset.tools()]


async def test_text_is_returned_as_text_and_other_content_as_json(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly"))
    assert await friendly.call("echo", text="hi ⟨there⟩") == "hi ⟨there⟩"
    assert await friendly.call("picture") == [
        {"type": "text", "text": "a dot"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
    ]


async def test_w19_a_path_in_a_text_is_not_rewritten(open_toolset: OpenToolset, tmp_path: Path) -> None:
    text = f"{tmp_path}/a.txt and /workspace/a.txt and /app/a.txt"
    assert await open_toolset(spec_for("friendly")).call("echo", text=text) == text


async def test_a_failing_tool_reports_its_reason(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly"))
    with pytest.raises(ToolFailed, match="the milk is sour"):
        await friendly.call("fail", reason="the milk is sour")
    assert await friendly.call("echo", text="still here") == "still here"


async def test_w20_a_server_sees_its_own_variables_and_no_other(open_toolset: OpenToolset) -> None:
    ours = {
        "PATH": os.environ["PATH"],
        "HOME": "/nowhere",
        "ANTHROPIC_API_KEY": "sk-ant-secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "TICKET": "t-123456",
    }
    spec = spec_for("friendly", env={"TOKEN": "${TICKET}"}, variables=("TICKET",))
    names = str(await open_toolset(spec, environ=ours).call("environment")).splitlines()
    assert "TOKEN" in names
    assert not {"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "TICKET"} & set(names)


@pytest.mark.parametrize("name", sorted(key_variables()))
async def test_a_server_that_asks_for_a_model_key_is_refused(open_toolset: OpenToolset, name: str) -> None:
    spec = spec_for("friendly", env={"K": f"${{{name}}}"}, variables=(name,))
    with pytest.raises(InvalidConfig, match="which is a model key"):
        await open_toolset(spec, environ={name: "sk-secret-secret"}).toolset.start()


async def test_a_server_that_asks_for_the_configured_key_variable_is_refused(
    open_toolset: OpenToolset,
) -> None:
    spec = spec_for("friendly", env={"K": "${COMPANY_KEY}"}, variables=("COMPANY_KEY",))
    environ = {"COMPANY_KEY": "sk-secret-secret"}
    with pytest.raises(InvalidConfig, match="which is a model key") as refused:
        await open_toolset(spec, environ=environ, keys={"COMPANY_KEY"}).toolset.start()
    assert refused.value.hint == "give the server its own key in a variable with another name"


IMPORT_PROBE = """
import asyncio, sys, threading
from pathlib import Path

where = set()

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types", "pydantic"):
            where.add(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Watch())
from holdfast.mcp import McpToolset, Pins, ServerSpec

async def main(server, folder):
    spec = ServerSpec(name="plain", command=sys.executable, args=(server, "plain", folder))
    async with McpToolset(spec, workspace=Path(folder), pins=Pins()) as toolset:
        await toolset.start()

asyncio.run(main(*sys.argv[1:]))
print(where)
"""


async def test_the_mcp_library_is_loaded_outside_the_event_loop(tmp_path: Path) -> None:
    loading = await asyncio.create_subprocess_exec(
        sys.executable, "-c", IMPORT_PROBE, str(SERVERS / "hard_to_stop.py"), str(tmp_path), stdout=PIPE
    )
    said, _ = await loading.communicate()
    assert said.decode().strip() == "{False}"


async def test_a_server_runs_in_the_workspace(open_toolset: OpenToolset, tmp_path: Path) -> None:
    assert await open_toolset(spec_for("friendly")).call("folder") == str(tmp_path / "workspace")


async def test_a_python_server_does_not_import_code_from_the_workspace(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    mine = open_toolset(
        ServerSpec(
            name="time", command=sys.executable, args=("-m", "mcp_server_time", "--local-timezone", "UTC")
        )
    )
    trap = tmp_path / "workspace" / "mcp_server_time"
    trap.mkdir()
    (trap / "__main__.py").write_text("open('sprung', 'w')")
    result = await mine.call("get_current_time", timezone="UTC")
    assert isinstance(result, dict)
    assert result["timezone"] == "UTC"
    assert not (tmp_path / "workspace" / "sprung").exists()


async def test_progress_is_reported_for_the_call_it_belongs_to(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly"))
    assert await friendly.call("count", to=3) == "counted to 3"
    reported = [each for each in friendly.notifications if isinstance(each, Progressed)]
    assert reported  # the protocol lets a result overtake the last reports
    expected = [("1.1", 1, 3), ("1.1", 2, 3), ("1.1", 3, 3)]
    assert [(each.call, each.progress, each.total) for each in reported] == expected[: len(reported)]


async def test_a_cancelled_call_is_cancelled_at_the_server(open_toolset: OpenToolset, tmp_path: Path) -> None:
    friendly = open_toolset(spec_for("friendly"))
    await friendly.toolset.start()
    marker = tmp_path / "marker"
    task = asyncio.create_task(friendly.call("wait_forever", marker=str(marker)))
    while not task.done() and await friendly.call("echo", text="are you there?"):
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while not marker.exists():
        await friendly.call("echo", text="and now?")


async def test_a_call_without_an_answer_times_out(open_toolset: OpenToolset, tmp_path: Path) -> None:
    friendly = open_toolset(spec_for("friendly", call_seconds=0.5))
    with pytest.raises(ToolTimeout):
        await friendly.call("wait_forever", marker=str(tmp_path / "marker"))
    assert await friendly.call("echo", text="x") == "x"


async def test_a_server_that_never_answers_does_not_delay_the_others(open_toolset: OpenToolset) -> None:
    silent = open_toolset(ServerSpec(name="silent", command="sleep", args=("60",), start_seconds=0.3))
    friendly = open_toolset(spec_for("friendly"))
    failed = await start_servers((silent.toolset, friendly.toolset))
    assert list(failed) == ["silent"]
    assert isinstance(failed["silent"], ToolTimeout)
    assert friendly.toolset.tools()
    assert silent.toolset.tools() == ()


async def test_w28_servers_start_in_parallel(open_toolset: OpenToolset, tmp_path: Path) -> None:
    marks = (str(tmp_path / "one"), str(tmp_path / "two"))
    one = open_toolset(spec_for("rendezvous", *marks, name="one"))
    two = open_toolset(
        spec_for("rendezvous", *reversed(marks), name="two")
    )  # each waits for the other to start
    assert await start_servers((one.toolset, two.toolset)) == {}
    assert [type(each).__name__ for each in (*one.notifications, *two.notifications)] == [
        "ServerStarted",
        "ServerStarted",
    ]


async def test_a_missing_program_is_named_in_the_error(open_toolset: OpenToolset) -> None:
    with pytest.raises(ToolFailed, match="no-such-program"):
        await open_toolset(ServerSpec(name="ghost", command="no-such-program")).toolset.start()


async def test_a_server_that_exits_is_reported_with_its_last_error_line_and_restarted(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    switch = tmp_path / "die"
    exiting = open_toolset(spec_for("hostile", "exiting", str(switch), name="exiting"))
    switch.touch()
    with pytest.raises(ToolFailed, match="ended with code 3: exiting as requested"):
        await exiting.call("work")
    assert isinstance(exiting.notifications[-1], ServerFailed)
    switch.unlink()
    assert await exiting.call("work") == "ok"


async def test_a_server_that_exits_between_calls_is_reported_and_restarted_by_the_next_call(
    open_toolset: OpenToolset,
) -> None:
    quiet = open_toolset(spec_for("hostile", "fake-approval", name="quiet"))
    await quiet.toolset.start()
    reported = asyncio.Event()
    quiet.toolset.add_listener(
        lambda notifications: reported.set() if isinstance(notifications, ServerFailed) else None
    )
    pid = quiet.toolset.supervisor_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)  # which also ends the server
    await reported.wait()
    assert "approved" in str(await quiet.call("work"))


async def test_a_server_that_keeps_exiting_is_restarted_after_growing_delays(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    clock, switch = FakeClock(), tmp_path / "die"
    exiting = open_toolset(spec_for("hostile", "exiting", str(switch), name="exiting"), clock=clock)
    switch.touch()
    for _ in range(2):
        with pytest.raises(ToolFailed, match="ended with code"):
            await exiting.call("work")
    with pytest.raises(ToolFailed, match="next attempt is in 1 s"):
        await exiting.call("work")
    clock.advance(1.0)
    with pytest.raises(ToolFailed, match="ended with code"):
        await exiting.call("work")
    with pytest.raises(ToolFailed, match="next attempt is in 2 s"):
        await exiting.call("work")
    clock.advance(2.0)
    switch.unlink()
    assert await exiting.call("work") == "ok"


async def test_a_pinned_server_offers_its_tools_before_it_runs(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    pins = Pins(tmp_path / "pins.json")
    await open_toolset(spec_for("friendly"), pins=pins).toolset.start()
    again = open_toolset(spec_for("friendly"), pins=Pins(tmp_path / "pins.json"))
    assert await start_servers((again.toolset,)) == {}
    assert "friendly.add" in [tool.name for tool in again.toolset.tools()]
    assert not again.toolset.is_running


async def test_closing_a_toolset_ends_its_processes(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly"))
    await friendly.toolset.start()
    pid = friendly.toolset.supervisor_pid
    assert pid is not None
    await friendly.toolset.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_calls_to_one_server_run_concurrently(open_toolset: OpenToolset, tmp_path: Path) -> None:
    friendly = open_toolset(spec_for("friendly"))
    await friendly.toolset.start()
    slow = asyncio.create_task(friendly.call("wait_forever", marker=str(tmp_path / "marker")))
    assert await friendly.call("echo", text="quick") == "quick"
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_a_server_is_reached_by_http_with_its_headers(open_toolset: OpenToolset) -> None:
    async with serve_http(greeting_server(), port=0, token="a-token-of-the-server") as address:
        headers = {"Authorization": "Bearer ${REMOTE_TOKEN}"}
        spec = ServerSpec(name="remote", url=address, headers=headers, variables=("REMOTE_TOKEN",))
        remote = open_toolset(spec, environ={"REMOTE_TOKEN": "a-token-of-the-server"})
        assert await remote.call("greet") == "hello"
        assert remote.toolset.supervisor_pid is None
        await remote.toolset.close()
        with pytest.raises(ToolFailed):  # the server requires the header
            await open_toolset(ServerSpec(name="remote", url=address)).call("greet")
    with pytest.raises(ToolFailed):
        await remote.call("greet")


async def test_a_call_to_a_server_cannot_be_staged(open_toolset: OpenToolset) -> None:
    friendly = open_toolset(spec_for("friendly"))
    with pytest.raises(ToolFailed, match="cannot be staged"):
        await friendly.toolset.perform(friendly.make_call("echo", {"text": "x"}), is_staged=True)


def test_importing_the_package_does_not_load_the_mcp_library() -> None:
    import subprocess

    code = "import sys, holdfast.mcp; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert McpToolset is not None
