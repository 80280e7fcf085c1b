"""What the model receives for its code and calls: bounded, and a refusal with its rule and advice."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.tool_replies import MAX_RETURN_CHARACTERS, run_text
from holdfast.core import JsonObject, Limits, Nonconverged, Ok, ToolMessage
from holdfast.core.events import RunEnded
from holdfast.guests import script
from holdfast.models import Prompt, Reply, say, use, use_all
from holdfast.policy import FixedPolicy
from holdfast.session import Settings
from holdfast.testing import memory_session
from holdfast.world import MemoryWorld

SOME_WORDS = 200


def ended(**fields: object) -> RunEnded:
    return RunEnded(turn=1, run=1, **{"status": "ok", **fields})  # type: ignore[arg-type]


@given(
    printed=st.text(max_size=50).map(lambda text: text * 2000),
    error=st.text(max_size=50).map(lambda text: text * 2000),
    status=st.sampled_from(["ok", "error", "limit", "lost"]),
    value=st.one_of(st.none(), st.integers(), st.text(max_size=50).map(lambda text: text * 2000)),
)
def test_whatever_a_run_returns_the_model_gets_a_bounded_text(
    printed: str, error: str, status: str, value: object
) -> None:
    text, is_error = run_text(ended(printed=printed, error=error, status=status, value=value))
    assert 0 < len(text) <= MAX_RETURN_CHARACTERS + SOME_WORDS
    assert is_error == (status != "ok")


def test_a_long_output_keeps_its_beginning_and_end_and_marks_the_gap() -> None:
    text, _ = run_text(ended(printed="first" + "x" * 100_000 + "last"))
    assert text.startswith("first")
    assert text.endswith("last")
    assert "characters omitted" in text


async def heard_after(reply: Reply, mode: str, policy: FixedPolicy) -> str:
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("ok")

    settings = Settings(acts_with="code" if mode == "code" else "tools")
    async with memory_session([reply, listen], policy=policy, settings=settings) as session:
        await session.send("go")
    last = heard[0].messages[-1]
    assert isinstance(last, ToolMessage)
    return last.returns[-1].content


@pytest.mark.parametrize("mode", ["code", "tools"])
async def test_of_a_reply_with_very_many_calls_only_the_first_are_executed_and_the_rest_explained(
    mode: Literal["code", "tools"],
) -> None:
    def call(number: int) -> tuple[str, JsonObject]:
        write: JsonObject = {"path": f"{number}.txt", "content": str(number)}
        if mode == "tools":
            return "world__write", write
        return "execute_code", {"code": script({"call": "world.write", "arguments": write})}

    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("enough")

    world = MemoryWorld()
    reply = use_all(*map(call, range(1, 5001)))
    async with memory_session([reply, listen], world=world, settings=Settings(acts_with=mode)) as session:
        outcome = await session.send("go")
    assert outcome == Ok(value="enough")
    assert sorted(world.list("*")) == sorted(f"{n}.txt" for n in range(1, 129))
    last = heard[0].messages[-1]
    assert isinstance(last, ToolMessage)
    assert len(last.returns) == 5000
    assert [each.is_error for each in last.returns] == [False] * 128 + [True] * 4872
    assert "only the first 128 of a reply are" in last.returns[128].content


DELETE: JsonObject = {"path": "a.txt"}
AS_CODE = use("execute_code", {"code": script({"call": "world.delete", "arguments": DELETE})})
AS_TOOL = use("world__delete", DELETE)


@pytest.mark.parametrize(("mode", "reply"), [("code", AS_CODE), ("tools", AS_TOOL)])
async def test_a_refusal_names_its_rule_and_what_to_do_instead(mode: str, reply: Reply) -> None:
    content = await heard_after(reply, mode, FixedPolicy(default="allow", verdicts={"world.delete": "deny"}))
    assert "(rule " in content
    assert "Do not try it another way" in content
    assert "tell the person" in content


async def test_invalid_arguments_can_be_corrected() -> None:
    content = await heard_after(use("world__delete", {"file": "a"}), "tools", FixedPolicy(default="allow"))
    assert "(rule invalid-arguments). Correct the arguments." in content


async def test_a_spent_budget_ends_the_turn_and_the_call_is_made_once_there_is_more() -> None:
    both = use_all(("world__list", {}), ("world__list", {}))
    settings = Settings(acts_with="tools")
    async with memory_session([both, say("ok")], settings=settings, limits=Limits(calls=1)) as session:
        assert await session.send("go") == Nonconverged(value="", reason="budget", dimension="calls")
        await session.raise_budget(Limits(calls=2))
        assert await session.advance() == Ok(value="ok")
        assert [entry.result for entry in session.audit()] == ["ok", "ok"]


async def test_an_unknown_tool_is_refused_and_the_turn_continues() -> None:
    content = await heard_after(use("mail__send", {}), "tools", FixedPolicy(default="allow"))
    assert "mail.send" in content


async def test_code_that_is_not_a_string_is_answered_and_not_run() -> None:
    content = await heard_after(use("execute_code", {"code": 3}), "code", FixedPolicy(default="allow"))
    assert "takes one argument" in content
