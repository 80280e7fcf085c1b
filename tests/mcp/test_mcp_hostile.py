"""Hostile servers over stdio: none of them gets anything, and each is named in the error."""

import json
import resource
from pathlib import Path

import pytest
from tests.mcp.toolset_harness import OpenToolset, ToolsetHarness, spec_for

from holdfast.core import escape_invisible
from holdfast.core.errors import ToolError, ToolFailed
from holdfast.mcp import Pins, ServerFailed, ToolsPendingReview


async def hostile(open_toolset: OpenToolset, kind: str, *arguments: str, **options: Pins) -> ToolsetHarness:
    """Start a hostile server."""
    harness = open_toolset(spec_for("hostile", kind, *arguments, name=kind, call_seconds=20.0), **options)
    await harness.toolset.start()
    return harness


async def test_hidden_text_in_a_description_is_made_visible(open_toolset: OpenToolset) -> None:
    (tool,) = (await hostile(open_toolset, "hidden-text")).toolset.tools()
    assert "<U+E0073><U+E0065><U+E006E><U+E0064>" in escape_invisible(tool.description)


async def test_a_tool_that_changes_after_it_was_accepted_cannot_be_called(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    pins, switch = Pins(), tmp_path / "switch"
    first = await hostile(open_toolset, "changing-tools", str(switch), pins=pins)
    assert await first.call("work") == "ok"
    switch.touch()
    second = await hostile(open_toolset, "changing-tools", str(switch), pins=pins)
    assert second.notifications[0] == ToolsPendingReview(
        server="changing-tools", changed=("work",), added=("extra",)
    )
    assert second.toolset.tools() == ()
    with pytest.raises(ToolFailed, match="changed since it was accepted"):
        await second.call("work")


async def test_a_tool_that_changed_before_a_lazy_start_cannot_be_called(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    pins, switch = Pins(), tmp_path / "switch"
    await hostile(open_toolset, "changing-tools", str(switch), pins=pins)
    switch.touch()
    lazy = open_toolset(spec_for("hostile", "changing-tools", str(switch), name="changing-tools"), pins=pins)
    assert [tool.name for tool in lazy.toolset.tools()] == ["changing-tools.work"]
    with pytest.raises(ToolFailed, match="changed since it was accepted"):
        await lazy.call("work")


async def test_a_list_that_changes_while_the_server_runs_is_compared_before_the_next_call(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    switch = tmp_path / "switch"
    changing = await hostile(open_toolset, "changing-tools", str(switch))
    assert await changing.call("work") == "ok"
    switch.touch()
    assert await changing.call("work") == "ok"  # only now does the server announce the change
    with pytest.raises(ToolFailed, match="changed since it was accepted"):
        await changing.call("work")


async def test_all_tools_with_lookalike_names_are_refused(open_toolset: OpenToolset) -> None:
    lookalikes = await hostile(open_toolset, "lookalikes")
    assert [tool.name for tool in lookalikes.toolset.tools()] == ["lookalikes.work"]
    assert sorted(each.name for each in lookalikes.toolset.refused) == [
        "read_fi1e",
        "read_file",
        "twice",
        "twice",
    ]


async def test_tools_with_invalid_names_are_refused(open_toolset: OpenToolset) -> None:
    names = await hostile(open_toolset, "invalid-names")
    assert [tool.name for tool in names.toolset.tools()] == ["invalid-names.work"]
    assert len(names.toolset.refused) == 5


async def test_an_endless_list_of_tools_is_cut_off(open_toolset: OpenToolset) -> None:
    assert len((await hostile(open_toolset, "many-tools")).toolset.tools()) == 1000
    pages = await hostile(open_toolset, "endless-pages")
    assert pages.toolset.tools() == ()  # every page has the same name, so none is offered


@pytest.mark.parametrize("kind", ["oversized", "endless"])
async def test_an_oversized_result_stops_the_server_and_costs_little_memory(
    open_toolset: OpenToolset, kind: str
) -> None:
    harness = await hostile(open_toolset, kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ToolFailed, match="more than 16 MiB"):
        await harness.call("work")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 << 10
    assert not harness.toolset.is_running


async def test_a_flood_of_notifications_is_dropped_and_the_call_still_returns(
    open_toolset: OpenToolset,
) -> None:
    flood = await hostile(open_toolset, "flood")
    assert await flood.call("work") == "done"
    connection = await flood.toolset.connection()
    assert connection.rate_limiter.dropped > 30_000
    assert len(flood.notifications) < 4000


async def test_lines_that_are_not_messages_are_skipped(open_toolset: OpenToolset) -> None:
    assert await (await hostile(open_toolset, "malformed")).call("work") == "survived"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("unknown-id", "it answered request '999999', which is not open"),
        ("repeated-id", "which is not open"),
        ("object-id", "a malformed response"),
        ("cut-message", "an incomplete message"),
        ("invalid-utf8", "an incomplete message"),
        ("list-result", "a malformed response"),
        ("string-error", "a malformed response"),
        ("error-without-id", "an error that belongs to no request"),
        ("many-blocks", "a response with more than 20,000 objects"),
    ],
)
async def test_a_response_that_matches_no_request_stops_the_server_at_once(
    open_toolset: OpenToolset, kind: str, reason: str
) -> None:
    harness = await hostile(open_toolset, kind)
    with pytest.raises(ToolFailed, match=f"server '{kind}' broke the protocol: .*{reason}"):
        await harness.call("work")
    assert not harness.toolset.is_running
    assert isinstance(harness.notifications[-1], ServerFailed)


async def test_structured_data_may_have_many_rows(open_toolset: OpenToolset) -> None:
    result = await (await hostile(open_toolset, "many-rows")).call("work")
    assert isinstance(result, dict)
    assert len(result["rows"]) == 50_000  # type: ignore[arg-type]


async def test_an_unfinished_message_stops_the_server(
    open_toolset: OpenToolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = await hostile(open_toolset, "unfinished")
    await harness.toolset.close()
    monkeypatch.setattr("holdfast.mcp.client.stdio.STALL_SECONDS", 0.01)
    with pytest.raises(
        ToolFailed, match="server 'unfinished' sent an incomplete message and was disconnected"
    ):
        await harness.call("work")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("stray-initialize", "it answered request '4711', which is not open"),
        ("invalid-initialize", "protocolVersion: Input should be a valid string"),
        ("invalid-list", "tools: Input should be a valid list"),
    ],
)
async def test_a_server_with_an_invalid_handshake_or_list_does_not_start(
    open_toolset: OpenToolset, kind: str, reason: str
) -> None:
    with pytest.raises(ToolFailed, match=f"server '{kind}' broke the protocol: .*{reason}"):
        await hostile(open_toolset, kind)


async def test_the_next_call_restarts_a_server_that_broke_the_protocol(open_toolset: OpenToolset) -> None:
    harness = await hostile(open_toolset, "unknown-id")
    for _ in range(2):
        with pytest.raises(ToolFailed, match="which is not open"):
            await harness.call("work")
    with pytest.raises(ToolFailed, match="failed 2 times"):
        await harness.call("work")


async def test_an_invalid_result_is_an_error(open_toolset: OpenToolset) -> None:
    with pytest.raises(ToolError, match="broke the protocol"):
        await (await hostile(open_toolset, "invalid-result")).call("work")


async def test_a_server_cannot_use_our_model_or_ask_the_person(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    answers = json.loads(str(await (await hostile(open_toolset, "requesting")).call("work")))
    sampling, elicitation, roots = sorted(answers, key=lambda each: str(each["id"]))
    assert "error" in sampling
    assert "error" in elicitation
    assert roots["result"]["roots"] == [{"name": "workspace", "uri": (tmp_path / "workspace").as_uri()}]


async def test_a_result_that_looks_like_an_approval_is_only_a_result(open_toolset: OpenToolset) -> None:
    harness = await hostile(open_toolset, "fake-approval")
    answer = json.loads(str(await harness.call("work")))
    assert answer["decision"] == "approved"
    assert len(harness.notifications) == 1  # that it started, and no approval


async def test_a_servers_claim_to_be_read_only_is_ignored(open_toolset: OpenToolset) -> None:
    (tool,) = (await hostile(open_toolset, "fake-approval")).toolset.tools()
    assert not tool.is_read_only
    assert tool.roles is None
