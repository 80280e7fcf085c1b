"""A person lets the model read an output that it knew by name only: recorded as theirs, and from then on the author is lower."""

from pathlib import Path

import pytest
from tests.session.label_setup import Desk, asked, desk_policy, desk_session, events
from tests.session.test_hidden_output import HIDING, WORDS

from holdfast.app import Runtime
from holdfast.core.errors import InvalidInput
from holdfast.core.events import OutputRevealed
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use

SHOW = "print(mail.search(query='bill')[0]['body'])"
PAY = "paid = bank.pay(to='DE11', amount=1)"


def _code(text: str) -> Reply:
    return use("execute_code", {"code": text})


class _Ear:
    """Keeps what the model was told, and answers with a payment."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.heard: list[str] = []

    def __call__(self, prompt: Prompt) -> Reply:
        self.heard.append("\n".join(map(str, prompt.messages)))
        return self._replies.pop(0)


async def test_the_model_reads_an_output_that_the_person_reveals_and_its_author_is_a_strangers() -> None:
    desk, ear = Desk(), _Ear(_code(PAY), say("Paid."), _code(PAY), say("Paid."))
    replies: list[ScriptedReply] = [_code(SHOW), "It is {{out_1_1}}.", ear, ear, ear, ear]
    async with desk_session(replies, desk, policy=HIDING, can_ask=False) as session:
        await session.send("Read the mail.")
        await session.send("Pay DE11.")
        assert asked(session) == []
        assert WORDS not in ear.heard[0]
        revealed = await session.reveal("out_1_1", transport="test")
        assert (revealed.level, revealed.principal, revealed.transport) == ("stranger", "person", "test")
        assert WORDS in revealed.content
        await session.send("Pay DE11 again.")
        assert asked(session) == ["bank.pay"]
    assert WORDS in ear.heard[2]
    assert [each.output for each in events(session) if isinstance(each, OutputRevealed)] == ["out_1_1"]


async def test_the_result_of_a_call_is_revealed_by_its_name() -> None:
    ear = _Ear(say("I see."))
    replies: list[ScriptedReply] = [use("mail__search", {"query": "bill"}), "It is {{call_1_1}}.", ear]
    async with desk_session(replies, Desk(), policy=HIDING, can_ask=False) as session:
        await session.send("Read the mail.")
        assert session.hidden_outputs() == {"call_1_1": "stranger"}
        await session.reveal("call_1_1")
        assert session.hidden_outputs() == {}
        await session.send("And?")
    assert WORDS in ear.heard[0]


async def test_only_an_output_that_is_hidden_can_be_revealed() -> None:
    async with desk_session([_code(SHOW), "Done."], Desk(), policy=HIDING, can_ask=False) as session:
        await session.send("Read the mail.")
        for name in ("out_1_2", "call_1_1", "", "nothing"):
            with pytest.raises(InvalidInput):
                await session.reveal(name)
        await session.reveal("{{out_1_1}}")
        with pytest.raises(InvalidInput):
            await session.reveal("out_1_1")


async def test_a_rewind_before_it_takes_the_words_and_the_lower_author_back(tmp_path: Path) -> None:
    desk, ear = Desk(), _Ear(_code(PAY), say("Paid."), _code(PAY), say("Paid."))
    runtime = await Runtime.start(home=tmp_path / "home")
    try:
        session = await runtime.create(
            model=ScriptedModel([_code(SHOW), "It is {{out_1_1}}.", ear, ear, ear, ear]),
            policy=desk_policy(HIDING), toolsets=[desk.toolset], can_ask=False,
        )  # fmt: skip
        await session.send("Read the mail.")
        await session.reveal("out_1_1")
        await session.send("Pay DE11.")
        assert asked(session) == ["bank.pay"]
        await session.rewind(1)
        assert session.hidden_outputs() == {"out_1_1": "stranger"}
        await session.send("Pay DE11.")
        assert asked(session) == ["bank.pay"], "the second payment was made"
        assert WORDS in ear.heard[0]
        assert WORDS not in ear.heard[2]
    finally:
        await runtime.close()
