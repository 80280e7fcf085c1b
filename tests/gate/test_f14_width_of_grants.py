"""F14: a grant covers a set of calls that is shown before it is given, and nothing outside it."""

import inspect
import random
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

import pytest
from tests.gate import naive_coverage

from holdfast.core import (
    ArgumentRoles,
    Call,
    Coverage,
    FunctionToolset,
    Json,
    JsonObject,
    Ok,
    PathTarget,
    Response,
    Role,
    Target,
    Tool,
    call_id,
    describe_coverage,
    is_covered,
)
from holdfast.core.errors import InvalidInput
from holdfast.gate import find_offers
from holdfast.models import ScriptedReply, use_all
from holdfast.policy import FixedPolicy, LexicalPaths, contents_of, targets_of
from holdfast.session import Session, Settings
from holdfast.testing import memory_session


def tool(name: str, *, is_read_only: bool = False, is_destructive: bool = False, **roles: Role) -> Tool:
    return Tool(
        name=name,
        parameters={"type": "object", "properties": {argument: {} for argument in roles}},
        roles={argument: ArgumentRoles(default=(role,)) for argument, role in roles.items()},
        is_read_only=is_read_only,
        is_destructive=is_destructive,
    )


TOOLS = [
    tool("files.read", is_read_only=True, path="read-path", limit="none"),
    tool("files.write", path="write-path", content="content", mode="none"),
    tool("files.copy", source="read-path", destination="write-path"),
    tool("files.delete", is_destructive=True, path="delete-path"),
    tool("git.log", is_read_only=True, repo="read-path", count="none"),
    tool("git.commit", repo="write-history", message="commit-message"),
    tool("web.fetch", is_read_only=True, url="fetch-url", length="none"),
    tool("time.now", is_read_only=True, zone="none"),
    tool("time.convert", is_read_only=True, zone="none", to="none"),
    tool("shell.run", argv="command", script="command", cwd="none", stdin="content", env="none"),
    tool("net.connect", host="proxy-domain", port="none"),
    tool("hub.issue", owner="github-owner", repo="github-repo", title="none"),
]
PATHS = [
    "a.txt",
    "src/a.py",
    "src/b.py",
    "src/deep/c.py",
    "src/Makefile",
    ".",
    "/etc/hosts",
    "/srv/data/x",
    "/srv/data/y",
]
ODD: dict[str, Sequence[Json]] = {
    "read-path": PATHS,
    "write-path": PATHS,
    "delete-path": PATHS,
    "write-history": ["."],
    "commit-message": ["one", "two"],
    "fetch-url": [
        "https://docs.test/a",
        "https://docs.test/b?q=1",
        "http://docs.test/a",
        "https://other.test/",
    ],
    "command": [
        ["git", "log"],
        ["git", "log", "-3"],
        ["git", "push"],
        ["ls", "-l"],
        ["python", "-c", "1"],
        ["git"],
        ["sh"],
        "git log -5",
        "git log > out",
        "git log | head; git status",
        "eval $X",
        "FOO=1 git log",
    ],
    "proxy-domain": ["docs.test", "DOCS.test", "other.test", "a@b"],
    "github-owner": ["me", "you"],
    "github-repo": ["boat", "sail"],
    "content": ["x", "y"],
    "none": [1, 2, "UTC", None],
}


def resolved(made: Tool, arguments: JsonObject) -> tuple[Target, ...]:
    return targets_of(made, arguments, LexicalPaths())


def random_call(chance: random.Random) -> tuple[Call, Tool, tuple[Target, ...]]:
    made = chance.choice(TOOLS)
    arguments: JsonObject = {}
    for name, roles in (made.roles or {}).items():
        if chance.random() < 0.9:
            arguments[name] = chance.choice(ODD[roles.default[0]])
    if chance.random() < 0.05:
        arguments["unknown"] = "/etc/shadow"
    if chance.random() < 0.05:
        arguments = dict.fromkeys(arguments)
    return Call(id=call_id(1, 1), operation=made.name, arguments=arguments), made, resolved(made, arguments)


def random_offers(
    seed: int,
) -> Iterator[tuple[random.Random, Call, Tool, tuple[Target, ...], tuple[Coverage, ...]]]:
    chance = random.Random(seed)
    while True:
        call, made, targets = random_call(chance)
        yield chance, call, made, targets, find_offers(call, made, targets, contents_of(made, call.arguments))


def check_laws(pairs: int) -> int:
    """Check pairs of grants and calls against the naive matcher; returns how many were covered."""
    covered = checked = 0
    for chance, call, made, targets, offers in random_offers(14):
        assert len(offers) <= 4
        words = [describe_coverage(each) for each in offers]
        assert len(set(words)) == len(words), "no two offers read the same"
        for offer in offers:
            assert is_covered(offer, call, made, targets), "a grant matches the call that made it"
            for _ in range(10):
                other, their, found = random_call(chance)
                matches = is_covered(offer, other, their, found)
                assert matches == naive_coverage.naive_match(offer, other, their, found), (offer, other)
                assert not (matches and "unknown" in other.arguments and "unknown" not in call.arguments)
                covered += matches
                checked += 1
        if checked >= pairs:
            break
    return covered


def test_f14_a_grant_matches_the_call_that_made_it_and_nothing_outside_its_words() -> None:
    assert check_laws(20_000) > 200


@pytest.mark.soak
def test_f14_a_million_pairs_of_grants_and_calls() -> None:
    assert check_laws(1_000_000) > 10_000


def test_f14_the_naive_matcher_is_small() -> None:
    lines = inspect.getsource(naive_coverage.naive_match) + inspect.getsource(naive_coverage.naive_area)
    assert len(lines.splitlines()) <= 60


def test_f14_offers_contain_each_other_from_narrow_to_wide() -> None:
    for _, (chance, _, _, _, offers) in enumerate(islice(random_offers(3), 300)):
        for narrow, wide in pairwise(offers):
            for _ in range(30):
                other, their, found = random_call(chance)
                if is_covered(narrow, other, their, found) and "unknown" not in other.arguments:
                    values = {each.argument for each in narrow.values if each.digest}
                    if all(_is_plain(their, name) for name in values):
                        assert is_covered(wide, other, their, found)


def _is_plain(made: Tool, name: str) -> bool:
    roles = (made.roles or {}).get(name)
    return roles is not None and roles.default in (("none",), ("content",))


@pytest.mark.parametrize(
    ("number", "arguments", "offered"),
    [
        (
            1,
            {"path": "src/a.py", "content": "x"},
            [
                "files.write on path /workspace/src/a.py (write-path) with any content",
                "files.write on path everything below /workspace/src but no file that programs run (write-path) with any content",
                "files.write on path everything in the workspace but no file that programs run (write-path) with any content",
                "files.write on path everything in the workspace but no file that programs run (write-path) with any arguments",
            ],
        ),
        (
            4,
            {"repo": ".", "count": 3},
            [
                "git.log on repo /workspace (read-path) with count=3",
                "git.log on repo everything in the workspace (read-path) with any arguments",
                "all read-only calls of git on everything in the workspace (read-path) with any arguments",
            ],
        ),
        (
            6,
            {"url": "https://docs.test/a"},
            [
                "web.fetch on url https://docs.test/a (fetch-url)",
                "web.fetch on url everything at https://docs.test (fetch-url) with any arguments",
                "all read-only calls of web on everything at https://docs.test (fetch-url) with any arguments",
            ],
        ),
        (7, {"zone": "UTC"}, ['time.now with zone="UTC"', "time.now with any arguments", "all read-only calls of time with any arguments"]),
        (
            9,
            {"argv": ["git", "log", "-3"]},
            [
                "shell.run on argv git log -3 (command)",
                "shell.run on commands that begin with `git log`, without redirections into files (command) with any cwd",
                "shell.run on commands that begin with `git`, without redirections into files (command) with any cwd",
            ],
        ),
        (9, {"argv": ["python", "-c", "1"]}, ["shell.run on argv python -c 1 (command)", "shell.run on argv python -c 1 (command) with any cwd"]),
        (
            10,
            {"host": "docs.test", "port": 443},
            [
                "net.connect on host docs.test:443 (proxy-domain) with port=443",
                "net.connect on host everything at docs.test (proxy-domain) with any arguments",
            ],
        ),
        (3, {"path": "src/a.py"}, ["files.delete on path /workspace/src/a.py (delete-path)", "files.delete on path everything below /workspace/src but no file that programs run (delete-path)"]),
        (0, {"path": "/etc/hosts"}, ["files.read on path /etc/hosts (read-path)", "files.read on path /etc/hosts (read-path) with any arguments", "all read-only calls of files on /etc/hosts (read-path) with any arguments"]),
    ],
)  # fmt: skip
def test_f14_each_offer_says_what_it_covers(number: int, arguments: JsonObject, offered: list[str]) -> None:
    made = TOOLS[number]
    call = Call(id=call_id(1, 1), operation=made.name, arguments=arguments)
    found = find_offers(call, made, resolved(made, arguments), contents_of(made, arguments))
    shown = [describe_coverage(each) for each in found]
    assert shown == offered


def test_f14_no_folder_grant_covers_a_protected_path_or_a_file_that_programs_run() -> None:
    made = TOOLS[1]
    offers = find_offers(
        Call(id=call_id(1, 1), operation=made.name, arguments={"path": "src/a.py", "content": "x"}),
        made,
        resolved(made, {"path": "src/a.py", "content": "x"}),
        ("content",),
    )
    for path in ("src/Makefile", "src/.git/hooks/x"):
        arguments: JsonObject = {"path": path, "content": "x"}
        targets = resolved(made, arguments)
        assert isinstance(targets[0], PathTarget)
        call = Call(id=call_id(1, 2), operation=made.name, arguments=arguments)
        assert not any(is_covered(each, call, made, targets) for each in offers)


def session_replies() -> list[ScriptedReply]:
    zones: list[JsonObject] = [{"zone": zone} for zone in ("UTC", "Asia/Tokyo", "Europe/Oslo")]
    return [use_all(*(("time__now", zone) for zone in zones)), "It is late."]


async def asked_session(session: Session) -> None:
    await session.send("What time is it?")
    [first] = session.escalations()[:1]
    await session.resolve(first.id, Response(verdict="approve", scope="session", offer=2))


async def test_f14_one_approval_of_a_tool_covers_the_next_calls_and_says_how_many_it_would_have() -> None:
    now = TOOLS[7]
    clock_tools = FunctionToolset({now.name: (now, lambda arguments: "noon")})
    async with memory_session(
        session_replies() * 2,
        policy=FixedPolicy(default="allow", verdicts={"time.now": "escalate"}),
        toolsets=[clock_tools],
        settings=Settings(acts_with="tools"),
    ) as session:
        await asked_session(session)
        assert await session.advance() == Ok(value="It is late.")
        assert [call.arguments["zone"] for call in clock_tools.performed] == [
            "UTC",
            "Asia/Tokyo",
            "Europe/Oslo",
        ]
        [grant] = session.grants()
        assert grant.coverage is not None
        assert describe_coverage(grant.coverage) == "time.now with any arguments"


async def test_f14_an_offer_that_was_not_shown_is_refused() -> None:
    now = TOOLS[7]
    async with memory_session(
        session_replies(),
        policy=FixedPolicy(default="escalate"),
        toolsets=[FunctionToolset({now.name: (now, lambda arguments: "noon")})],
        settings=Settings(acts_with="tools"),
    ) as session:
        await session.send("What time is it?")
        first = session.escalations()[0]
        with pytest.raises(InvalidInput, match="no offer 9"):
            await session.resolve(first.id, Response(verdict="approve", scope="session", offer=9))
        assert first.id in {each.id for each in session.escalations()}
