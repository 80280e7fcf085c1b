"""What the model sees of a large answer is shortened, marked, and says how to get the rest."""

import re

from holdfast.agent.tool_replies import MAX_RETURN_CHARACTERS, call_returned
from holdfast.core import Returned, ToolCallPart


def test_f01_a_long_text_of_a_file_says_which_piece_is_omitted() -> None:
    text = "".join(f"{number} é\n" for number in range(50_000))
    part = ToolCallPart(id="1", tool="world__read", arguments={"path": "a.txt"})
    shown = call_returned(1, part, Returned(value=text)).content
    assert len(shown) < MAX_RETURN_CHARACTERS + 300
    found = re.search(
        r"\n\[\.\.\. [0-9,]+ characters omitted; world\.read with offset=(\d+) and length=(\d+)", shown
    )
    assert found is not None
    start, length = int(found[1]), int(found[2])
    head, tail = shown[: found.start()], shown.rpartition(" ...]\n")[2]
    assert head + text.encode()[start : start + length].decode() + tail == text


def test_f01_another_long_answer_names_its_blob() -> None:
    part = ToolCallPart(id="1", tool="box__get", arguments={})
    shown = call_returned(1, part, Returned(value=["x" * 50_000], blob="ab" * 32)).content
    assert f"a person sees blob {'ab' * 32} with `holdfast show --full`" in shown
