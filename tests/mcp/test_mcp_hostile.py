"""Servers that mean harm: what they reach, which is nothing."""

import json
import resource
from pathlib import Path

import pytest
from tests.mcp.bench import Bench, Opener, spec_for

from holdfast.core import escape_invisible
from holdfast.core.errors import ToolError, ToolFailed
from holdfast.mcp import Pins, ServerFailed, ToolsPendingReview


async def hostile(opened: Opener, kind: str, *arguments: str, **options: Pins) -> Bench:
    """A hostile server, running."""
    bench = opened(spec_for("hostile", kind, *arguments, name=kind, call_seconds=20.0), **options)
    await bench.toolset.start()
    return bench


async def test_poison_in_a_description_is_shown_as_what_it_is(opened: Opener) -> None:
    (tool,) = (await hostile(opened, "poison")).toolset.tools()
    assert "<U+E0073><U+E0065><U+E006E><U+E0064>" in escape_invisible(tool.description)


async def test_a_tool_that_changes_after_it_was_accepted_cannot_be_called(
    opened: Opener, tmp_path: Path
) -> None:
    pins, switch = Pins(), tmp_path / "switch"
    first = await hostile(opened, "rug", str(switch), pins=pins)
    assert await first.call("work") == "ok"
    switch.touch()
    second = await hostile(opened, "rug", str(switch), pins=pins)
    assert second.news[0] == ToolsPendingReview(server="rug", changed=("work",), added=("extra",))
    assert second.toolset.tools() == ()
    with pytest.raises(ToolFailed, match="not what it was"):
        await second.call("work")


async def test_a_tool_that_changes_behind_a_lazy_start_cannot_be_called(
    opened: Opener, tmp_path: Path
) -> None:
    pins, switch = Pins(), tmp_path / "switch"
    await hostile(opened, "rug", str(switch), pins=pins)
    switch.touch()
    lazy = opened(spec_for("hostile", "rug", str(switch), name="rug"), pins=pins)
    assert [tool.name for tool in lazy.toolset.tools()] == ["rug.work"]
    with pytest.raises(ToolFailed, match="not what it was"):
        await lazy.call("work")


async def test_a_list_that_changes_while_the_server_runs_is_looked_at_before_the_next_call(
    opened: Opener, tmp_path: Path
) -> None:
    switch = tmp_path / "switch"
    rug = await hostile(opened, "rug", str(switch))
    assert await rug.call("work") == "ok"
    switch.touch()
    assert await rug.call("work") == "ok"  # the server says only now that its list has changed
    with pytest.raises(ToolFailed, match="not what it was"):
        await rug.call("work")


async def test_tools_that_look_alike_are_refused_both(opened: Opener) -> None:
    shadow = await hostile(opened, "shadow")
    assert [tool.name for tool in shadow.toolset.tools()] == ["shadow.work"]
    assert sorted(each.name for each in shadow.toolset.refused) == [
        "read_fi1e",
        "read_file",
        "twice",
        "twice",
    ]


async def test_names_that_no_tool_may_have_are_refused(opened: Opener) -> None:
    names = await hostile(opened, "names")
    assert [tool.name for tool in names.toolset.tools()] == ["names.work"]
    assert len(names.toolset.refused) == 5


async def test_a_list_without_end_is_cut(opened: Opener) -> None:
    assert len((await hostile(opened, "many")).toolset.tools()) == 1000
    pages = await hostile(opened, "pages")
    assert pages.toolset.tools() == ()  # fifty times the same name: nobody can tell which is meant


@pytest.mark.parametrize("kind", ["oversized", "endless"])
async def test_a_result_without_measure_ends_the_server_and_not_us(opened: Opener, kind: str) -> None:
    bench = await hostile(opened, kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ToolFailed, match="more than 16 MiB"):
        await bench.call("work")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 << 10
    assert not bench.toolset.is_running


async def test_a_flood_of_notifications_is_dropped_and_the_call_still_answered(opened: Opener) -> None:
    flood = await hostile(opened, "flood")
    assert await flood.call("work") == "done"
    connection = await flood.toolset.connection()
    assert connection.ration.dropped > 30_000
    assert len(flood.news) < 4000


async def test_lines_that_are_no_messages_are_skipped(opened: Opener) -> None:
    assert await (await hostile(opened, "malformed")).call("work") == "survived"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("stranger", "it answered request '999999', which is not open"),
        ("repeater", "which is not open"),
        ("odd-id", "an answer of the wrong shape"),
        ("half", "a message that is not whole"),
        ("no-text", "a message that is not whole"),
        ("list-result", "an answer of the wrong shape"),
        ("word-error", "an answer of the wrong shape"),
        ("nameless", "an error that belongs to no request"),
        ("crumbs", "an answer of more than 20,000 parts"),
    ],
)
async def test_an_answer_that_fits_no_request_ends_the_server_at_once_and_is_named(
    opened: Opener, kind: str, reason: str
) -> None:
    bench = await hostile(opened, kind)
    with pytest.raises(ToolFailed, match=f"server '{kind}' broke the protocol: .*{reason}"):
        await bench.call("work")
    assert not bench.toolset.is_running
    assert isinstance(bench.news[-1], ServerFailed)


async def test_data_of_many_rows_is_no_answer_of_many_parts(opened: Opener) -> None:
    result = await (await hostile(opened, "rows")).call("work")
    assert isinstance(result, dict)
    assert len(result["rows"]) == 50_000  # type: ignore[arg-type]


async def test_half_a_message_and_nothing_more_ends_the_server(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await hostile(opened, "halting")
    await bench.toolset.close()
    monkeypatch.setattr("holdfast.mcp.client.stdio.STALL_SECONDS", 0.01)
    with pytest.raises(ToolFailed, match="server 'halting' sent an incomplete message and was disconnected"):
        await bench.call("work")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("stray-greeting", "it answered request '4711', which is not open"),
        ("bad-greeting", "protocolVersion: Input should be a valid string"),
        ("bad-list", "tools: Input should be a valid list"),
    ],
)
async def test_a_server_that_cannot_greet_or_list_does_not_start_and_says_why(
    opened: Opener, kind: str, reason: str
) -> None:
    with pytest.raises(ToolFailed, match=f"server '{kind}' broke the protocol: .*{reason}"):
        await hostile(opened, kind)


async def test_a_server_that_garbled_one_answer_is_started_again_by_the_next_call(opened: Opener) -> None:
    bench = await hostile(opened, "stranger")
    for _ in range(2):
        with pytest.raises(ToolFailed, match="which is not open"):
            await bench.call("work")
    with pytest.raises(ToolFailed, match="failed 2 times"):
        await bench.call("work")


async def test_a_result_of_the_wrong_shape_is_an_error(opened: Opener) -> None:
    with pytest.raises(ToolError, match="broke the protocol"):
        await (await hostile(opened, "broken")).call("work")


async def test_a_server_gets_neither_our_model_nor_a_persons_ear(opened: Opener, tmp_path: Path) -> None:
    answers = json.loads(str(await (await hostile(opened, "begging")).call("work")))
    sampling, elicitation, roots = sorted(answers, key=lambda each: str(each["id"]))
    assert "error" in sampling
    assert "error" in elicitation
    assert roots["result"]["roots"] == [{"name": "workspace", "uri": (tmp_path / "workspace").as_uri()}]


async def test_a_result_that_pretends_to_be_an_approval_is_a_result(opened: Opener) -> None:
    bench = await hostile(opened, "approval")
    answer = json.loads(str(await bench.call("work")))
    assert answer["decision"] == "approved"
    assert len(bench.news) == 1  # that it started, and nothing of an approval


async def test_a_servers_claim_to_be_harmless_makes_nothing_milder(opened: Opener) -> None:
    (tool,) = (await hostile(opened, "approval")).toolset.tools()
    assert not tool.is_read_only
    assert tool.roles is None
