"""Path names of guests: every string is inside the workspace or refused, and normalization is idempotent."""

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.errors import PathRefused
from holdfast.world.paths.names import is_reachable, is_within, relative

CASES = Path(__file__).parent / "data" / "session-paths.tsv"

HOSTILE = [
    "..",
    "../x",
    "a/../../x",
    "/etc/passwd",
    "/workspacex/a",
    "/workspace/../etc/passwd",
    "/app/../../etc/passwd",
    "/proc/self/root/etc/passwd",
    "//server/share",
    "\\\\server\\share",
    "\\\\?\\C:\\x",
    "\\??\\C:\\x",
    "..\\x",
    "C:\\x",
    "c:/x",
    "C:relative",
    "file:///etc/passwd",
    "~/.ssh/id_rsa",
    "~root/x",
    "a\0b",
    "a\nb",
    "a\x7fb",
    "a\u202eb",
    "a\u200bb",
    "a\ufeffb",
    "a\u00adb",
    "a\u061cb",
    "a\u3164b",
    "a\U000e0041b",
    "a\U000e0100b",
    "cafe\u0301",
    "./~/x",
    "/workspace/C:x",
    "name.",
    "name ",
    "folder./x",
    "folder /x",
    "x" * 256,
    "é" * 128,
    "a/" * 2100,
    "\ud800",
    ".holdfast-abc",
    ".HOLDFAST-abc",
    "GIT~1",
    "a/git~1/config",
    ".git::$INDEX_ALLOCATION/config",
    ".Git:x",
    "holdfa~1/policy.yaml",
    ".holdfast::$INDEX_ALLOCATION",
    "",
]
PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "a",
        "b c",
        "~",
        "C:",
        "\\",
        "\0",
        "é",
        "e\u0301",
        "x.",
        "...",
        "/",
        "workspace",
        "app",
        "%2e%2e",
    ]
)
STRINGS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=8).map("/".join))


@pytest.mark.parametrize("given", HOSTILE, ids=ascii)
def test_a_hostile_name_is_refused(given: str) -> None:
    with pytest.raises(PathRefused):
        relative(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("...", "..."),
        ("%2e%2e/x", "%2e%2e/x"),
        ("12:30", "12:30"),
        ("café", "café"),
        (" leading", " leading"),
        ("/workspace", "."),
        ("/workspace//a", "a"),
        ("x" * 255, "x" * 255),
    ],
)
def test_an_unusual_but_plain_name_is_accepted(given: str, expected: str) -> None:
    assert relative(given) == expected


def test_a_path_of_the_greatest_length_is_one_and_a_longer_one_is_refused() -> None:
    parts = "/".join(["x" * 255] * 15)
    longest = f"{parts}/{'y' * (4095 - len(parts) - 1)}"
    assert relative(longest) == longest
    with pytest.raises(PathRefused, match="at most 4095 bytes"):
        relative(f"{longest}y")


def test_the_longest_root_decides() -> None:
    assert relative("/app/project/x", ("/app", "/app/project")) == "x"
    assert relative("/app/x", ("/app", "/app/project")) == "x"


def test_the_cases_of_the_workspace_seed_hold() -> None:
    rows = list(csv.DictReader(CASES.read_text().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == 8
    for row in rows:
        path = json.loads(row["input_json"])
        if row["ours"] == "error:invalid":
            with pytest.raises(PathRefused):
                relative(path)
        else:
            assert f"ok:{relative(path)}" == row["ours"]


@settings(deadline=None)
@given(STRINGS)
def test_every_string_is_inside_or_refused_and_stays_so(given: str) -> None:
    try:
        path = relative(given)
    except PathRefused:
        with pytest.raises(PathRefused):
            relative(given)
        return
    assert path == "." or not re.search(r"(^|/)(\.\.?|)(/|$)", path)
    assert not path.startswith("/")
    assert relative(path) == path == relative(given)
    assert path == "." or is_reachable(path)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/", "/", True),
        ("/etc", "/", True),
        ("a", "/", False),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("a/b", "a", True),
        ("ab", "a", False),
    ],
)
def test_f27_a_path_is_within_a_folder_also_if_the_folder_is_the_root(
    path: str, folder: str, expected: bool
) -> None:
    assert is_within(path, folder) is expected
