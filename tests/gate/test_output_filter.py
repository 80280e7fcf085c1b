"""The output filter: a guest receives no secret that the journal hides."""

import pytest

from holdfast.core import Json, encode
from holdfast.gate import OutputFilter
from holdfast.store import Redactor

SECRET = "abc12"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (SECRET, "[redacted]"),
        (f"key {SECRET}!", "key [redacted]!"),
        ([{"key": SECRET, SECRET: 1}], [{"key": "[redacted]", "[redacted]": 1}]),
        ('{"key": "abc12"}', '{"key": "[redacted]"}'),
        (["nothing", 3, None, True], ["nothing", 3, None, True]),
    ],
)
def test_a_result_reaches_the_guest_without_the_secrets_of_the_journal(result: Json, expected: Json) -> None:
    redactor = Redactor(SECRET)
    assert OutputFilter(redactor=redactor).filter_result(result) == expected
    assert redactor(encode(expected)) == encode(expected), "the journal has nothing more to hide"


def test_a_secret_that_is_a_number_is_redacted() -> None:
    assert OutputFilter(redactor=Redactor("90210")).filter_result({"zip": 90210, "n": 9}) == {
        "zip": "[redacted]",
        "n": 9,
    }


def test_a_secret_with_quotes_is_redacted_and_leaves_valid_json() -> None:
    secret = 'a","b":"c'
    filtered = OutputFilter(redactor=Redactor(secret)).filter_result({"a": "b", "x": secret})
    assert filtered == {"a": "b", "x": "[redacted]"}


def test_a_secret_that_is_learned_later_is_redacted_from_then_on() -> None:
    redactor = Redactor()
    output_filter = OutputFilter(redactor=redactor)
    assert output_filter.filter_result(SECRET) == SECRET
    redactor.add(SECRET)
    assert output_filter.filter_result(SECRET) == "[redacted]"
    assert output_filter.filter_error(f"failed with {SECRET}") == "failed with [redacted]"
