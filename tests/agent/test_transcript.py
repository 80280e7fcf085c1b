"""The transcript of a conversation: no copy is made, and a transcript does not change."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.conversation import Transcript
from holdfast.core import Message, UserMessage
from holdfast.models import Prompt, say, use_all
from holdfast.session import Settings
from holdfast.testing import memory_session

few = st.lists(st.text(max_size=2).map(lambda text: UserMessage(text=text)), max_size=5)
cuts = st.one_of(st.none(), st.integers(-12, 12))


@given(before=few, body=few, after=few, later=few, start=cuts, stop=cuts)
def test_a_transcript_reads_like_the_equivalent_tuple(
    before: list[Message],
    body: list[Message],
    after: list[Message],
    later: list[Message],
    start: int | None,
    stop: int | None,
) -> None:
    whole = (*before, *body, *after)
    transcript = Transcript(body, before=tuple(before), after=tuple(after))
    body.extend(later)  # the conversation continues
    assert transcript == whole
    assert len(transcript) == len(whole)
    assert list(transcript) == list(whole)
    assert list(reversed(transcript)) == list(reversed(whole))
    assert transcript[start:stop] == whole[start:stop]
    assert [transcript[n] for n in range(-len(whole), len(whole))] == [
        whole[n] for n in range(-len(whole), len(whole))
    ]


async def test_a_transcript_does_not_change_while_the_conversation_grows() -> None:
    given: list[Prompt] = []
    kinds: list[list[str]] = []

    def watch(prompt: Prompt) -> object:
        given.append(prompt)
        kinds.append([type(message).__name__ for message in prompt.messages])
        both = use_all(("world__exists", {"path": "a"}), ("world__exists", {"path": "b"}))
        return both if len(given) == 1 else say("done")

    async with memory_session([watch] * 4, settings=Settings(acts_with="tools")) as session:  # type: ignore[list-item]
        await session.send("one")
        await session.send("two")
    first = ["UserMessage", "ModelMessage", "ToolMessage"]
    assert kinds == [first[:1], first, [*first, "ModelMessage", "UserMessage"]]
    assert [[type(message).__name__ for message in prompt.messages] for prompt in given] == kinds
