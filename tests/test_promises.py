"""Every promise of SECURITY.md has tests, every mark names a promise, and the page of promises is current."""

from tests.promises import PAGE, PROMISES, SECURITY, marked_tests, page, summary


def test_every_promise_has_a_test_and_every_mark_a_promise() -> None:
    assert sorted(marked_tests()) == [promise.id for promise in PROMISES]


def test_ids_are_counted() -> None:
    assert [promise.id for promise in PROMISES] == [f"P{number:02}" for number in range(1, len(PROMISES) + 1)]


def test_the_page_and_the_security_policy_are_current() -> None:
    hint = "run: python -m tests.promises"
    assert PAGE.read_text() == page(), hint
    assert summary() in SECURITY.read_text(), hint
