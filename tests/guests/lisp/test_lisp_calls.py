"""Calls to the host: every effect is a call with named arguments; nothing else leaves a program."""

import pytest
from tests.guests.lisp.programs import Host, new_guest, run, value

from holdfast.core import Failed, Json, JsonObject, Returned, Tool
from holdfast.guests import GuestLimits
from holdfast.guests.lisp import LANGUAGE, LanguageToolset
from holdfast.guests.lisp.json_bridge import from_json
from holdfast.guests.lisp.vm.limits import Meter

API: list[tuple[str, str, JsonObject]] = [
    ('(world/read "a.txt")', "world.read", {"path": "a.txt"}),
    ('(world/read :path "a.txt")', "world.read", {"path": "a.txt"}),
    ('(world/list "**/*.py")', "world.list", {"pattern": "**/*.py"}),
    ("(world/list)", "world.list", {}),
    ('(world/exists? "a")', "world.exists", {"path": "a"}),
    ('(world/stat "a")', "world.stat", {"path": "a"}),
    ('(world/write "a" "text")', "world.write", {"path": "a", "content": "text"}),
    ('(world/delete "a")', "world.delete", {"path": "a"}),
    ('(world/search "TODO")', "world.search", {"query": "TODO"}),
    ('(world/search "TODO" "src/**")', "world.search", {"query": "TODO", "pattern": "src/**"}),
    ('(world/search "TODO" :limit 5)', "world.search", {"query": "TODO", "limit": 5}),
    ("(world/fingerprint)", "world.fingerprint", {}),
    ('(world/fingerprint "a")', "world.fingerprint", {"path": "a"}),
    ('(llm/complete "why?")', "llm.complete", {"prompt": "why?"}),
    ('(llm/complete "why?" :max-tokens 100)', "llm.complete", {"prompt": "why?", "max_tokens": 100}),
    ('(llm/intent "sort it")', "llm.intent", {"intent": "sort it"}),
    ("(session/id)", "session.id", {}),
    ("(session/turn-number)", "session.turn_number", {}),
    ("(session/status)", "session.status", {}),
    ("(session/budget-remaining 'tokens)", "session.budget_remaining", {"dimension": "tokens"}),
    ("(session/allowed? 'world.write)", "session.allowed", {"operation": "world.write"}),
    ("(session/read-only?)", "session.read_only", {}),
    ("(session/proposal-mode?)", "session.proposal_mode", {}),
    ("(session/audit-log)", "session.audit_log", {}),
    ("(session/operations-count)", "session.operations_count", {}),
    ("(session/proposals)", "session.proposals", {}),
    ("(session/commit-proposals!)", "session.commit_proposals", {}),
    ("(session/rollback-proposals!)", "session.rollback_proposals", {}),
    ('(call "any.thing" :some-name \'(1 (2 3)) :other {:a nil})', "any.thing", {"some_name": [1, [2, 3]], "other": {"a": None}}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "operation", "arguments"), API)
async def test_a_host_procedure_makes_one_call(code: str, operation: str, arguments: JsonObject) -> None:
    host = Host(answers={operation: lambda given: "answer"})

    assert await value(code, host) == "answer"
    assert host.calls == [(operation, arguments)]


SEARCH = Tool(
    name="github.search_code",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "per-page": {"type": "integer"}},
    },
)


@pytest.mark.parametrize(
    "code",
    [
        '(github/search-code :query "x" :per-page 3)',
        '(github/search_code "x" 3)',
        '(apply github/search-code (list "x" 3))',
        '(call "github.search_code" :query "x" :per-page 3)',
    ],
)
async def test_a_tool_is_a_procedure(code: str) -> None:
    host = Host(answers={"github.search_code": lambda given: None})
    await run(code, host, tools=(SEARCH,))

    expected = "per_page" if code.startswith("(call") else "per-page"
    assert host.calls == [("github.search_code", {"query": "x", expected: 3})]


async def test_a_program_may_redefine_the_name_of_a_tool() -> None:
    host = Host()

    assert (
        await run("(define (github/search-code) 5) (github/search-code)", host, tools=(SEARCH,))
    ).value == 5
    assert host.calls == []


@pytest.mark.parametrize(
    "code",
    [
        '(world/read "a" "b")',
        '(world/read "a" :path "b")',
        "(world/read :path)",
        '(world/read :path "a" :path "b")',
        "(world/read :path car)",
        "(world/read :path '(1 . 2))",
        '(call "x.y" 5)',
        "(call 5)",
    ],
)
async def test_invalid_arguments_never_reach_the_host(code: str) -> None:
    host = Host()
    ended = await run(code, host)

    assert ended.status == "error"
    assert host.calls == []


VALUES: list[Json] = [None, True, 0, -1.5, "text", [], [1, [2, []]], {}, {"a": {"b": [None]}}, 10**20]


@pytest.mark.parametrize("given", VALUES)
async def test_a_result_passes_through_a_program_unchanged(given: Json) -> None:
    host = Host(answers={"tool.echo": lambda arguments: arguments["it"], "tool.give": lambda _: given})

    assert await value('(call "tool.echo" :it (call "tool.give"))', host) == given


async def test_a_failed_call_can_be_caught_with_its_code() -> None:
    host = Host(answers={"tool.break": Failed(error="tool-timeout", reason="took too long")})

    assert await value(
        '(let ((o (try (call "tool.break")))) (list (outcome-field o :code) (outcome-field o :message)))',
        host,
    ) == [
        "tool-timeout",
        "tool.break failed: took too long",
    ]


async def test_effects_before_an_error_are_kept() -> None:
    host, guest = Host(), new_guest()
    ended = await run('(define x 5) (world/write "a.txt" "kept") (car x)', host, guest=guest)

    assert ended.status == "error"
    assert host.files == {"a.txt": "kept"}
    assert await value("x", guest=guest) == 5


async def test_a_lone_surrogate_in_a_file_name_is_replaced() -> None:
    host = Host(answers={"tool.give": lambda _: ["name\udc80"]})

    assert await value('(call "tool.give")', host) == ["name?"]


def test_a_long_text_that_is_not_ascii_enters_a_program_without_a_copy() -> None:
    text = "text 😀" * 1000

    assert from_json(text, Meter(GuestLimits())) is text


async def test_language_features_are_tools() -> None:
    toolset = LanguageToolset()

    assert tuple(tool.name for tool in toolset.tools()) == LANGUAGE


async def test_time_and_random_seed_come_from_the_request() -> None:
    code = "(list (now) (random 1000) (random 1000))"
    first = await run(code, seed=3, now_ms=77)

    assert first.value == (await run(code, seed=3, now_ms=77)).value
    assert first.value != (await run(code, seed=4, now_ms=77)).value
    assert isinstance(first.value, list)
    assert first.value[0] == 77


async def test_a_null_result_is_nil() -> None:
    assert await value('(nil? (call "tool.give"))', Host(answers={"tool.give": Returned()})) is True
