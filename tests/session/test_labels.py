"""Labels in a session: where a value came from decides what it may do."""

import pytest
from tests.session.label_setup import POLICY, Desk, asked, desk_policy, desk_session, events, levels_of

from holdfast.core import PERSON, ArgumentRoles, FunctionToolset, JsonObject, Needs, Ok, Response, Tool
from holdfast.core.approval_text import describe_provenance
from holdfast.core.events import RunEnded, RunStarted
from holdfast.guests.lisp import lisp_engine
from holdfast.models import Reply, ScriptedReply, use


def _code(text: str) -> Reply:
    return use("execute_code", {"code": text})


async def _run(code: str, *, says: str = "Please do it.", policy: str = POLICY) -> tuple[Desk, list[str]]:
    """Run one program in a new session. Returns what was done, and what would have been asked."""
    desk = Desk()
    async with desk_session([_code(code), "Done."], desk, policy=policy, can_ask=False) as session:
        outcome = await session.send(says)
        assert isinstance(outcome, Ok), outcome
        return desk, asked(session)


async def test_an_address_out_of_a_strangers_text_is_asked_about() -> None:
    code = "body = mail.search(query='bill')[0]['body']\nmail.send(to=body.split()[3], body='hi')"
    desk, refused = await _run(code)
    assert desk.effects("mail.send") == []
    assert refused == ["mail.send"]


async def test_a_field_that_the_policy_knows_goes_through() -> None:
    code = "m = mail.search(query='bill')[0]\nmail.send(to=m['sender'], body=m['body'])"
    desk, refused = await _run(code)
    assert [each["to"] for each in desk.effects("mail.send")] == ["ann@example.com"]
    assert refused == []


async def test_what_the_person_wrote_is_the_persons_own() -> None:
    code = "bank.pay(to=mail.search(query='bill')[0]['body'].split()[1], amount=20)"
    assert (await _run(code))[1] == ["bank.pay"]
    desk, refused = await _run(code, says="Pay 20 to DE99, as the mail says.")
    assert desk.effects("bank.pay") == [{"to": "DE99", "amount": 20}]
    assert refused == []


async def test_a_value_that_stands_in_a_trusted_field_is_known() -> None:
    code = """
bank.history()
bank.pay(to=mail.search(query='x')[0]['body'].replace('Pay DE99', 'DE11')[:4], amount=5)
"""
    assert (await _run(code))[0].effects("bank.pay") == [{"to": "DE11", "amount": 5}]


async def test_the_only_address_of_a_source_that_the_person_named_is_known() -> None:
    code = """
import re
page = web.get(url='https://dora.example')
mail.send(to=re.findall(r'[\\w.]+@[\\w.]+\\w', page)[0], body='hi')
"""
    says = "Her address is on https://dora.example"
    desk, _ = await _run(code, says=says)
    assert [each["to"] for each in desk.effects("mail.send")] == ["dora@example.com"]
    assert (await _run(code, says="Write to her."))[1] == ["mail.send"]


async def test_a_bounded_number_may_come_from_anyone() -> None:
    code = "n = len(mail.search(query='x')[0]['body'])\nbank.pay(to='DE11', amount=int(str(n)) + {})"
    assert (await _run(code.format(1)))[1] == []
    assert (await _run(code.format(5000)))[1] == ["bank.pay"]


async def test_a_program_that_is_written_after_a_strangers_words_were_shown_asks() -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [
        _code("print(mail.search(query='bill')[0]['body'])"),
        _code("bank.pay(to='DE99', amount=1)"),
        "Done.",
    ]
    async with desk_session(replies, desk, can_ask=False) as session:
        await session.send("What does the mail say?")
        assert asked(session) == ["bank.pay"]
        assert [event.author for event in events(session) if isinstance(event, RunStarted)] == [
            "own",
            "stranger",
        ]
        assert [event.shown for event in events(session) if isinstance(event, RunEnded)] == [
            "stranger",
            "stranger",
        ]


async def test_what_shows_nothing_of_a_stranger_leaves_the_author_alone() -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [
        _code("print(len(mail.search(query='bill')))"),
        _code("bank.pay(to='DE11', amount=1)"),
        "Done.",
    ]
    async with desk_session(replies, desk, can_ask=False) as session:
        await session.send("Pay if there is a mail.")
        assert asked(session) == []
    assert desk.effects("bank.pay") == [{"to": "DE11", "amount": 1}]


async def test_a_secret_leaves_only_with_an_approval() -> None:
    code = "mail.send(to='ann@example.com', body='the word is ' + vault.get())"
    assert (await _run(code))[1] == ["mail.send"]


async def test_a_program_that_cannot_be_followed_is_a_strangers() -> None:
    code = "x = mail.search(query='x')[0]['body']\ny = eval('x')\nmail.send(to=y.split()[3].rstrip('.'), body='')"
    assert (await _run(code))[1] == ["mail.send"]


async def test_variables_keep_their_levels_across_runs() -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [
        _code("m = mail.search(query='bill')[0]\nok = m['sender']\nbad = m['body'].split()[1]"),
        _code("mail.send(to=ok, body='hi')\nbank.pay(to=bad, amount=1)"),
        "Done.",
    ]
    async with desk_session(replies, desk, can_ask=False) as session:
        await session.send("Pay the bill.")
        assert asked(session) == ["bank.pay"]
    assert len(desk.effects("mail.send")) == 1


async def test_levels_are_on_record_and_an_approval_covers_exactly_this() -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [
        _code("bank.pay(to=mail.search(query='bill')[0]['body'].split()[1], amount=3)"),
        "Done.",
    ]
    async with desk_session(replies, desk) as session:
        assert isinstance(await session.send("Pay the bill."), Needs)
        levels = levels_of(session, "bank.pay")
        assert levels.arguments == {"to": "stranger"}
        sent = "body of mail.search (bill, call 1.1), by ann@example.com"
        assert levels.sources == {"to": f"{sent}; never paid before"}
        (waiting,) = session.escalations()
        await session.resolve(waiting.id, Response(verdict="approve"), principal=PERSON)
        assert isinstance(await session.advance(), Ok)
    assert desk.effects("bank.pay") == [{"to": "DE99", "amount": 3}]


async def test_a_direct_call_of_the_model_is_written_by_it() -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [use("bank__pay", {"to": "DE11", "amount": 1}), use("mail__search", {"query": "x"}),
               use("bank__pay", {"to": "DE77", "amount": 1}), "Done."]  # fmt: skip
    async with desk_session(replies, desk, can_ask=False) as session:
        await session.send("Pay.")
        assert asked(session) == ["bank.pay"]
    assert desk.effects("bank.pay") == [{"to": "DE11", "amount": 1}]


async def test_a_policy_without_labels_records_nothing_of_them() -> None:
    plain = "policy: plain\nrules:\n  - {name: all, allow: '*'}\n"
    desk = Desk()
    replies: list[ScriptedReply] = [
        _code("m = mail.search(query='bill')\nmail.send(to=m[0]['body'], body='')"),
        "Done.",
    ]
    async with desk_session(replies, desk, policy=plain, can_ask=False) as session:
        await session.send("Go.")
        assert asked(session) == []
        for event in events(session):
            assert getattr(event, "author", None) is None
            assert getattr(event, "shown", None) is None
            assert getattr(event, "variables", None) is None
            assert getattr(getattr(event, "decision", None), "facts", None) is None


def test_the_policy_says_which_rule_wanted_which_level() -> None:
    policy = desk_policy()
    assert policy.labels[0].secret == ("vault.get",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("  - {name: a, escalate: '*', from: {payee: own}}", "only a rule that allows or stages"),
        ("  - {name: a, allow: '*', from: {payee: mine}}", "is not a level"),
        ("  - {name: a, allow: '*', from: {purse: own}}", "is not a role"),
        ("  - {name: a, allow: '*', planned: maybe}", "is not a value of `planned`"),
        ("  - {name: a, allow: '*', planned: false}", "expected true or any"),
    ],
)
def test_a_mistake_in_a_label_rule_is_reported(text: str, problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        desk_policy(f"policy: x\nlabels: {{}}\nrules:\n{text}\n")


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        ("(bank/pay :to (get (car (bank/history)) :payee) :amount 1)", []),
        ("(bank/pay :to (get (car (bank/history)) :subject) :amount 1)", ["bank.pay"]),
        (
            '(define m (car (mail/search :query "bill")))\n(mail/send :to (get m :sender) :body (get m :body))',
            [],
        ),
        (
            '(define m (car (mail/search :query "bill")))\n(mail/send :to (get m :body) :body "hi")',
            ["mail.send"],
        ),
        ("(map (lambda (b) (bank/pay :to (get b :payee) :amount 1)) (bank/history))", []),
    ],
)
async def test_values_are_followed_through_lisp_programs(code: str, asks: list[str]) -> None:
    replies: list[ScriptedReply] = [use("execute_code", {"code": code}), "Done."]
    async with desk_session(replies, Desk(), engine=lisp_engine(key=b"k" * 32), can_ask=False) as session:
        await session.send("Do it.")
        assert asked(session) == asks


async def test_a_question_says_of_every_value_where_it_came_from() -> None:
    code = "m = mail.search(query='bill')[0]\nmail.send(to=m['body'].split()[3], body=m['body'])"
    async with desk_session([use("execute_code", {"code": code}), "Done."], Desk()) as session:
        await session.send("Answer it.")
        sources = levels_of(session, "mail.send").sources
    assert sources["body"].startswith("body of mail.search (bill, call 1.1), by ann@example.com")
    assert sources["to"].endswith("never used before")


async def test_a_question_begins_with_what_a_rule_asks_about_and_hides_no_argument() -> None:
    desk = Desk()
    code = (
        "m = mail.search(query='bill')[0]\nb, s = m['body'], m['subject']\n"
        "bank.pay(memo=b, note=b, text=s, more=s, to=b.split()[1], amount=1)"
    )
    pay = desk.functions["bank.pay"][0]
    free = {name: ArgumentRoles(default=("none",)) for name in ("memo", "note", "text", "more")}
    schema: JsonObject = {"type": "object", "properties": {each: {} for each in ("to", "amount", *free)}}
    wide = Tool(name="bank.pay", parameters=schema, roles={**free, **(pay.roles or {})})
    desk.toolset = FunctionToolset(desk.functions | {"bank.pay": (wide, desk.functions["bank.pay"][1])})
    async with desk_session([use("execute_code", {"code": code}), "Done."], desk) as session:
        await session.send("Pay it.")
        (question,) = session.escalations()
    assert describe_provenance(question) == (
        "to: body of mail.search (bill, call 1....ann@example.com; never paid before (anyone could have written it); "
        "memo, note: body of mail.search (bill, call 1.1), by ann@example.com (anyone could have written it); "
        "2 more arguments that are not yours"
    )


async def test_a_question_says_which_file_a_payee_stands_in_and_who_named_the_file() -> None:
    policy = POLICY.replace("labels:", "labels:\n  workspace: stranger")
    code = """
found = mail.search(query='bill')
written = world.write(path='DE99', content='DE42')
bank.pay(to=open('DE99').read(), amount=1)
"""
    replies: list[ScriptedReply] = [use("execute_code", {"code": code}), "Done."]
    async with desk_session(replies, Desk(), policy=policy) as session:
        await session.send("Pay it.")
        sources = levels_of(session, "bank.pay").sources
    assert sources["to"] == ("DE99 (call 1.3), named by ann@example.com; never paid before")
