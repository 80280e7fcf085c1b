"""What endorses a value, and what only looks like it."""

import pytest
from tests.session.label_setup import MAILS, POLICY, Desk, asked, desk_session

from holdfast.core import ArgumentRoles, FunctionToolset, Json, JsonObject, Tool
from holdfast.models import ScriptedReply, use

PAYMENT = "bank.pay(to=mail.search(query='x')[0]['body'], amount=1)"


async def _asks(said: str, value: Json, code: str = PAYMENT, policy: str = POLICY) -> list[str]:
    """What is asked if the person says this and the mail has that text."""
    desk = Desk()
    mails: list[Json] = [{**MAILS[0], "body": value}]  # type: ignore[dict-item]

    def search(_: JsonObject) -> Json:
        return mails

    roles = {"access": ArgumentRoles(default=("share-permission",))}
    parameters: JsonObject = {"type": "object", "properties": {"access": {}}}
    share = Tool(name="drive.share", parameters=parameters, roles=roles)
    desk.toolset = FunctionToolset(
        {**desk.functions, "mail.search": (desk.functions["mail.search"][0], search), "drive.share": (share, lambda _: None)}
    )  # fmt: skip
    replies: list[ScriptedReply] = [use("execute_code", {"code": code}), "Done."]
    async with desk_session(replies, desk, can_ask=False, policy=policy) as session:
        await session.send(said)
        return asked(session)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Pay DE11.", "DE11"),
        ("Pay (DE11)!", "DE11"),
        ("Open https://www.shop.example.com, please.", "www.shop.example.com"),
        ("Pay DE11, then DE12", "DE12"),
    ],
)
async def test_a_whole_word_of_the_person_endorses(said: str, value: str) -> None:
    assert await _asks(said, value) == []


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Pay DE11.22", "DE11"),
        ("Pay what www.shop.com.au says.", "www.shop.com"),
        ("Delete work/old.txt", "work"),
        ("Delete work/old.txt", "old.txt"),
        ("Open https://docs.example.com/a", "https://docs.example.com"),
        ("Write to ann@example.com.br", "ann@example.com"),
        ("Pay DE11:7", "DE11"),
    ],
)
async def test_a_part_of_a_word_of_the_person_endorses_nothing(said: str, value: str) -> None:
    assert await _asks(said, value) == ["bank.pay"]


@pytest.mark.parametrize("value", [True, False])
async def test_a_strangers_yes_or_no_is_a_strangers(value: Json) -> None:
    policy = POLICY.replace(
        "rules:", "rules:\n  - {name: share, allow: drive.share, from: {share-permission: own}}"
    )
    code = "drive.share(access=mail.search(query='x')[0]['body'])"
    assert await _asks("Share it.", value, code, policy) == ["drive.share"]
    assert await _asks("Share it.", value, f"drive.share(access={value})", policy) == []
