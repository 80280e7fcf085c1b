"""Grants: a saved approval covers what was shown, no more and no longer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import (
    PERSON,
    Call,
    Decision,
    Escalation,
    EscalationId,
    FakeClock,
    Grant,
    GrantId,
    GrantReach,
    Location,
    PathTarget,
    Response,
    Scope,
    Target,
    UrlTarget,
    call_id,
)
from holdfast.core.errors import InvalidConfig
from holdfast.gate import SavedGrants, covers, describe_grant, grant_for


def path(real: str, role: str = "write-path") -> PathTarget:
    return PathTarget(role=role, argument="path", location=Location(given=real, real=real))  # type: ignore[arg-type]


def url(host: str, where: str = "/", scheme: str = "https") -> UrlTarget:
    return UrlTarget(role="fetch-url", argument="url", given="", scheme=scheme, host=host, path=where)


def granted(*targets: Target, reach: GrantReach = "exact", scope: Scope = "session") -> Grant:
    call = Call(id=call_id(1, 1), operation="fs.write", arguments={"path": "x"})
    escalation = Escalation(
        id=EscalationId("e"),
        call=call,
        decision=Decision(verdict="escalate", rule="ask", reason="because"),
        digest=call.digest,
        tool_digest="",
        policy_digest="",
        opened_ms=0,
        expires_ms=1,
        targets=targets,
    )
    response = Response(verdict="approve", scope=scope, reach=reach, amount=3)
    grant = grant_for(escalation, response, principal=PERSON, now_ms=FakeClock().now_ms())
    assert grant is not None
    return grant


def call(**arguments: str) -> Call:
    return Call(id=call_id(2, 1), operation="fs.write", arguments=dict(arguments))


@pytest.mark.parametrize(
    ("grant", "targets", "is_covered"),
    [
        (granted(path("/p/a")), [path("/p/a")], True),
        (granted(path("/p/a")), [path("/p/b")], False),
        (granted(path("/p/a")), [path("/p/a", "delete-path")], False),
        (granted(path("/p/a")), [path("/p/a"), path("/p/b")], False),
        (granted(path("/p/a"), reach="folder"), [path("/p/b")], True),
        (granted(path("/p/a"), reach="folder"), [path("/p/c/d")], True),
        (granted(path("/p/a"), reach="folder"), [path("/pq/b")], False),
        (granted(path("/p/a"), reach="folder"), [path("/p")], False),
        (granted(path("/a"), reach="folder"), [path("/etc/passwd")], False),
        (granted(url("example.com", "/x")), [url("example.com", "/y")], False),
        (granted(url("example.com", "/x"), reach="host"), [url("example.com", "/y")], True),
        (granted(url("example.com"), reach="host"), [url("evil.example.com")], False),
        (granted(url("example.com"), reach="host"), [url("example.com", scheme="http")], False),
        (granted(path("/p/a")), [], False),
    ],
)
def test_a_grant_covers_its_targets(grant: Grant, targets: list[Target], is_covered: bool) -> None:
    assert covers(grant, call(path="x"), targets) is is_covered


def test_an_exact_grant_for_a_url_includes_its_query() -> None:
    def asked(query: str) -> UrlTarget:
        given = f"https://example.com/find?{query}"
        return UrlTarget(
            role="fetch-url", argument="url", given=given, scheme="https", host="example.com", path="/find"
        )

    grant = granted(asked("q=weather"))
    assert "q=weather" in describe_grant(grant)
    assert covers(grant, call(path="x"), [asked("q=weather")])
    assert not covers(grant, call(path="x"), [asked("q=the-password")])


def test_without_a_target_only_the_same_arguments_are_covered() -> None:
    grant = granted()
    assert covers(grant, call(path="x"), [])
    assert not covers(grant, call(path="y"), [])


def test_a_grant_for_one_operation_covers_no_other() -> None:
    other = Call(id=call_id(2, 1), operation="fs.delete", arguments={"path": "x"})
    assert not covers(granted(path("/p/a")), other, [path("/p/a")])


PATHS = st.lists(st.sampled_from(["a", "b", "c", ".."]), min_size=1, max_size=4).map(
    lambda p: "/" + "/".join(p)
)


@given(asked=PATHS, later=PATHS, reach=st.sampled_from(["exact", "folder"]))
def test_a_grant_matches_the_call_that_made_it_and_nothing_outside_its_words(
    asked: str, later: str, reach: GrantReach
) -> None:
    grant = granted(path(asked), reach=reach)
    assert covers(grant, call(path="x"), [path(asked)])
    if covers(grant, call(path="x"), [path(later)]) and later != asked:
        assert reach == "folder"
        folder = asked.rpartition("/")[0]
        assert folder
        assert later.startswith(folder + "/")
        assert folder in describe_grant(grant)


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("turn", "in turn 1"),
        ("times", "2 more times"),
        ("session", "in this session"),
        ("always", "in every session"),
    ],
)
def test_a_grant_describes_its_duration(scope: Scope, words: str) -> None:
    assert words in describe_grant(granted(path("/p/a"), scope=scope))


async def test_saved_grants_are_kept_until_revoked(tmp_path: Path) -> None:
    saved_grants = SavedGrants(tmp_path / "grants.json")
    assert saved_grants.load() == ()
    one, other = granted(path("/p/a"), scope="always"), granted(path("/p/b"), scope="always")
    await saved_grants.save(one)
    await saved_grants.save(other)
    assert SavedGrants(tmp_path / "grants.json").load() == (one, other)
    assert await saved_grants.revoke(one.id)
    assert not await saved_grants.revoke(GrantId("never"))
    assert saved_grants.load() == (other,)
    assert (tmp_path / "grants.json").stat().st_mode & 0o777 == 0o600


def test_an_unreadable_file_of_grants_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "grants.json").write_text("[{}]")
    with pytest.raises(InvalidConfig):
        SavedGrants(tmp_path / "grants.json").load()
