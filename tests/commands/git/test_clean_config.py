"""The configuration that programs in the sandbox see holds no secret and means the same otherwise."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.git.config_text import ConfigEntry, parse_config, render_config

CONFIG = b"""\
# https://old:secret1@example.com
[core]
\trepositoryformatversion = 0
\tbare = false ; secret2
\tsshCommand = ssh -i secret3
\tfsmonitor = secret4
[remote "origin"]
\turl = https://person:secret5@example.com/a/b.git
\tpushurl = ssh://git:secret6@example.com/a.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[remote "other"] url = https://secret7@example.com/x
[branch "main"]
\tremote = https://secret8@example.com/x
\tmerge = refs/heads/main
[url "https://secret9@example.com/"]
\tinsteadOf = gh:
[credential "https://example.com"]
\thelper = "!echo password=secret10"
[http "https://example.com/"]
\textraheader = AUTHORIZATION: basic secret11
\tsslVerify = true
[http]
\tproxy = http://u:secret12@proxy
[lfs "https://secret13@example.com/info/lfs"]
\taccess = basic
[include]
\tpath = secret14
[my "app"]
\tapi-token = secret15
\tauthor = me
[commit]
\tgpgsign = true
[submodule "x"]
\turl = git@example.com:x/y.git
"""


def listed(path: Path) -> list[str]:
    output = subprocess.run(
        ["git", "config", "--file", str(path), "--no-includes", "--list", "-z"],
        capture_output=True,
        check=True,
    ).stdout
    return output.decode("utf-8", "surrogateescape").split("\0")[:-1]


def test_secrets_are_gone_and_the_rest_stays(tmp_path: Path) -> None:
    cleaned = clean_git_config(CONFIG)
    assert b"secret" not in cleaned
    path = tmp_path / "config"
    path.write_bytes(cleaned)
    assert listed(path) == [
        "core.repositoryformatversion\n0",
        "core.bare\nfalse",
        "remote.origin.url\nhttps://example.com/a/b.git",
        "remote.origin.pushurl\nssh://git@example.com/a.git",
        "remote.origin.fetch\n+refs/heads/*:refs/remotes/origin/*",
        "remote.other.url\nhttps://example.com/x",
        "branch.main.remote\nhttps://example.com/x",
        "branch.main.merge\nrefs/heads/main",
        "http.https://example.com/.sslverify\ntrue",
        "lfs.https://example.com/info/lfs.access\nbasic",
        "my.app.author\nme",
        "submodule.x.url\ngit@example.com:x/y.git",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[a]\n\tb = c # d\n\te = "f # g" ; h\n',
        '[a]b=c\n[A.B]\n c\n[a "B\\"\\\\C"] d = \\\n e \\\n  f\n',
        '[a]\n b = "x\\ty\\n" z  " w " \n c =\n d = "" \n',
        "[a]\r\n\tb = c\r\n",
        '[a]\n\tb = \\"quoted\\" \\\\ back\n',
        "\ufeff[a]\n\tb = c\n",
    ],
)
def test_a_file_is_read_as_git_reads_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, newline="")
    before = listed(path)
    path.write_text(render_config(parse_config(text)), newline="")
    assert listed(path) == before
    assert before


WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=12
)


@given(
    st.lists(
        st.tuples(WORDS.filter(lambda word: "\n" not in word) | st.none(), WORDS | st.none()), max_size=4
    )
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_git_reads_what_was_written(tmp_path: Path, entries: list[tuple[str | None, str | None]]) -> None:
    written = [
        ConfigEntry(section="a", subsection=subsection, name="b", value=value)
        for subsection, value in entries
    ]
    text = render_config(written)
    assert parse_config(text) == written
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8", newline="")
    expected = [
        f"a.{'' if each.subsection is None else each.subsection + '.'}b"
        + ("" if each.value is None else f"\n{each.value}")
        for each in written
    ]
    assert listed(path) == expected


@given(st.text(st.sampled_from('[]a.b"\\\n =#;\t\r-'), max_size=40))
@settings(deadline=None)
def test_any_text_is_read_to_its_end(text: str) -> None:
    once = render_config(parse_config(text))
    assert render_config(parse_config(once)) == once
