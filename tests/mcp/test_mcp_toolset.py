"""A server behind the toolset: what it can do, what it gets to see, and what becomes of it."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.mcp.bench import SERVERS, Opener, spec_for

from holdfast.core import FakeClock
from holdfast.core.errors import InvalidConfig, ToolFailed, ToolTimeout
from holdfast.mcp import McpToolset, Pins, Progressed, ServerFailed, ServerSpec, ServerStarted, start_servers
from holdfast.models import key_variables


async def test_a_server_is_started_by_the_first_call(opened: Opener) -> None:
    friendly = opened(spec_for("friendly"))
    assert friendly.news == []
    assert await friendly.call("add", a=2, b=3) == {"result": 5}
    assert friendly.toolset.is_running
    assert isinstance(friendly.news[0], ServerStarted)


async def test_tools_are_named_after_their_server(opened: Opener) -> None:
    friendly = opened(spec_for("friendly", name="other-name"))
    await friendly.toolset.start()
    assert "other-name.add" in [tool.name for tool in friendly.toolset.tools()]


async def test_text_comes_back_as_text_and_the_rest_as_json(opened: Opener) -> None:
    friendly = opened(spec_for("friendly"))
    assert await friendly.call("echo", text="hi ⟨there⟩") == "hi ⟨there⟩"
    assert await friendly.call("picture") == [
        {"type": "text", "text": "a dot"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
    ]


async def test_a_tool_that_fails_says_why(opened: Opener) -> None:
    friendly = opened(spec_for("friendly"))
    with pytest.raises(ToolFailed, match="the milk is sour"):
        await friendly.call("fail", reason="the milk is sour")
    assert await friendly.call("echo", text="still here") == "still here"


async def test_a_server_sees_its_own_variables_and_none_of_our_keys(opened: Opener) -> None:
    ours = {
        "PATH": os.environ["PATH"],
        "HOME": "/nowhere",
        "ANTHROPIC_API_KEY": "sk-ant-secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "TICKET": "t-123456",
    }
    spec = spec_for("friendly", env={"TOKEN": "${TICKET}"}, variables=("TICKET",))
    names = str(await opened(spec, environ=ours).call("environment")).splitlines()
    assert "TOKEN" in names
    assert not {"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "TICKET"} & set(names)


@pytest.mark.parametrize("name", sorted(key_variables()))
async def test_a_key_of_ours_is_not_handed_on_even_when_asked_for(opened: Opener, name: str) -> None:
    spec = spec_for("friendly", env={"K": f"${{{name}}}"}, variables=(name,))
    with pytest.raises(InvalidConfig, match="a key of ours"):
        await opened(spec, environ={name: "sk-secret-secret"}).toolset.start()


async def test_the_variable_that_holds_the_key_is_not_handed_on_by_any_name(opened: Opener) -> None:
    spec = spec_for("friendly", env={"K": "${COMPANY_KEY}"}, variables=("COMPANY_KEY",))
    environ = {"COMPANY_KEY": "sk-secret-secret"}
    with pytest.raises(InvalidConfig, match="a key of ours") as refused:
        await opened(spec, environ=environ, keys={"COMPANY_KEY"}).toolset.start()
    assert refused.value.hint == "give the server a key of its own under another name"


LOADING = """
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
    spec = ServerSpec(name="friendly", command=sys.executable, args=(server,))
    async with McpToolset(spec, workspace=Path(folder), pins=Pins()) as toolset:
        await toolset.start()

asyncio.run(main(*sys.argv[1:]))
print(where)
"""


async def test_the_protocol_library_is_loaded_beside_the_loop(tmp_path: Path) -> None:
    loading = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LOADING, str(SERVERS / "friendly.py"), str(tmp_path), stdout=PIPE
    )
    said, _ = await loading.communicate()
    assert said.decode().strip() == "{False}"


async def test_a_server_works_in_the_workspace(opened: Opener, tmp_path: Path) -> None:
    assert await opened(spec_for("friendly")).call("folder") == str(tmp_path / "workspace")


async def test_code_in_the_workspace_is_not_loaded_by_a_python_server(opened: Opener, tmp_path: Path) -> None:
    mine = opened(
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


async def test_progress_is_told_under_the_call_it_belongs_to(opened: Opener) -> None:
    friendly = opened(spec_for("friendly"))
    assert await friendly.call("count", to=3) == "counted to 3"
    told = [each for each in friendly.news if isinstance(each, Progressed)]
    assert told  # the protocol lets a result overtake the last reports
    expected = [("1.1", 1, 3), ("1.1", 2, 3), ("1.1", 3, 3)]
    assert [(each.call, each.progress, each.total) for each in told] == expected[: len(told)]


async def test_a_cancelled_call_is_cancelled_at_the_server(opened: Opener, tmp_path: Path) -> None:
    friendly = opened(spec_for("friendly"))
    await friendly.toolset.start()
    marker = tmp_path / "marker"
    task = asyncio.create_task(friendly.call("wait_forever", marker=str(marker)))
    while not task.done() and await friendly.call("echo", text="are you there?"):
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while not marker.exists():
        await friendly.call("echo", text="and now?")


async def test_a_server_that_never_answers_a_call_is_timed_out(opened: Opener, tmp_path: Path) -> None:
    friendly = opened(spec_for("friendly", call_seconds=0.5))
    with pytest.raises(ToolTimeout):
        await friendly.call("wait_forever", marker=str(tmp_path / "marker"))
    assert await friendly.call("echo", text="x") == "x"


async def test_a_server_that_never_answers_at_all_does_not_hold_up_the_others(opened: Opener) -> None:
    silent = opened(ServerSpec(name="silent", command="sleep", args=("60",), start_seconds=0.3))
    friendly = opened(spec_for("friendly"))
    failed = await start_servers((silent.toolset, friendly.toolset))
    assert list(failed) == ["silent"]
    assert isinstance(failed["silent"], ToolTimeout)
    assert friendly.toolset.tools()
    assert silent.toolset.tools() == ()


async def test_servers_are_started_at_the_same_time(opened: Opener, tmp_path: Path) -> None:
    marks = (str(tmp_path / "one"), str(tmp_path / "two"))
    one = opened(spec_for("meeting", *marks, name="one"))
    two = opened(spec_for("meeting", *reversed(marks), name="two"))  # each waits for the other to have begun
    assert await start_servers((one.toolset, two.toolset)) == {}
    assert [type(each).__name__ for each in (*one.news, *two.news)] == ["ServerStarted", "ServerStarted"]


async def test_a_program_that_is_not_there_is_named(opened: Opener) -> None:
    with pytest.raises(ToolFailed, match="no-such-program"):
        await opened(ServerSpec(name="ghost", command="no-such-program")).toolset.start()


async def test_a_server_that_dies_is_reported_with_its_last_words_and_restarted(
    opened: Opener, tmp_path: Path
) -> None:
    switch = tmp_path / "die"
    mortal = opened(spec_for("hostile", "mortal", str(switch), name="mortal"))
    switch.touch()
    with pytest.raises(ToolFailed, match="ended with code 3: I was told to go"):
        await mortal.call("work")
    assert isinstance(mortal.news[-1], ServerFailed)
    switch.unlink()
    assert await mortal.call("work") == "ok"


async def test_a_server_that_dies_between_calls_is_reported_at_once_and_missed_by_nobody(
    opened: Opener,
) -> None:
    quiet = opened(spec_for("hostile", "approval", name="quiet"))
    await quiet.toolset.start()
    reported = asyncio.Event()
    quiet.toolset.follow(lambda news: reported.set() if isinstance(news, ServerFailed) else None)
    warden = quiet.toolset.warden
    assert warden is not None
    os.kill(warden, signal.SIGKILL)  # and with its warden the server goes
    await reported.wait()
    assert "approved" in str(await quiet.call("work"))


async def test_a_server_that_keeps_dying_is_left_alone_for_longer_and_longer(
    opened: Opener, tmp_path: Path
) -> None:
    clock, switch = FakeClock(), tmp_path / "die"
    mortal = opened(spec_for("hostile", "mortal", str(switch), name="mortal"), clock=clock)
    switch.touch()
    for _ in range(2):
        with pytest.raises(ToolFailed, match="ended with code"):
            await mortal.call("work")
    with pytest.raises(ToolFailed, match="tried again in 1 s"):
        await mortal.call("work")
    clock.advance(1.0)
    with pytest.raises(ToolFailed, match="ended with code"):
        await mortal.call("work")
    with pytest.raises(ToolFailed, match="tried again in 2 s"):
        await mortal.call("work")
    clock.advance(2.0)
    switch.unlink()
    assert await mortal.call("work") == "ok"


async def test_a_known_server_offers_its_tools_before_it_runs(opened: Opener, tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    await opened(spec_for("friendly"), pins=pins).toolset.start()
    again = opened(spec_for("friendly"), pins=Pins(tmp_path / "pins.json"))
    assert await start_servers((again.toolset,)) == {}
    assert "friendly.add" in [tool.name for tool in again.toolset.tools()]
    assert not again.toolset.is_running


async def test_a_closed_toolset_leaves_no_process(opened: Opener) -> None:
    friendly = opened(spec_for("friendly"))
    await friendly.toolset.start()
    warden = friendly.toolset.warden
    assert warden is not None
    await friendly.toolset.close()
    with pytest.raises(ProcessLookupError):
        os.kill(warden, 0)


async def test_calls_to_one_server_do_not_wait_for_each_other(opened: Opener, tmp_path: Path) -> None:
    friendly = opened(spec_for("friendly"))
    await friendly.toolset.start()
    slow = asyncio.create_task(friendly.call("wait_forever", marker=str(tmp_path / "marker")))
    assert await friendly.call("echo", text="quick") == "quick"
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_a_server_is_reached_by_http_with_its_headers(opened: Opener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVERS / "friendly.py"), "--http", str(port), stderr=asyncio.subprocess.PIPE
    )
    assert serving.stderr is not None
    try:
        while b"running on" not in await serving.stderr.readline():
            pass
        remote = opened(
            ServerSpec(name="remote", url=f"http://127.0.0.1:{port}/mcp", headers={"X-Who": "us"})
        )
        assert await remote.call("add", a=2, b=3) == {"result": 5}
        assert remote.toolset.warden is None
        await remote.toolset.close()
    finally:
        serving.terminate()
        await serving.communicate()
    with pytest.raises(ToolFailed):
        await remote.call("add", a=2, b=3)


async def test_a_toolset_cannot_stage(opened: Opener) -> None:
    friendly = opened(spec_for("friendly"))
    with pytest.raises(ToolFailed, match="cannot be staged"):
        await friendly.toolset.perform(friendly.wish("echo", {"text": "x"}), is_staged=True)


def test_the_door_loads_no_protocol_library() -> None:
    import subprocess

    code = "import sys, holdfast.mcp; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert McpToolset is not None
