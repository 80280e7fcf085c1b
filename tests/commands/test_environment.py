"""The environment of programs: built from nothing, with the person's name for commits."""

from pathlib import Path

import pytest

from holdfast.commands.environment import build_environment
from holdfast.commands.toolchains import Toolchains

NO_TOOLCHAINS = Toolchains(folders=(), path=("/usr/bin",), variables={})


def test_commits_carry_the_name_of_the_persons_own_configuration_and_what_it_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[user]\n\tname = Old\n\tname = Ann Müller\n\tsigningkey = secret\n[include]\n\tpath = work.inc\n"
    )
    (tmp_path / "work.inc").write_text("[user]\n\temail = ann@example.com\n")
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    environment = build_environment(NO_TOOLCHAINS, added={"TMPDIR": "/other"})
    assert environment["GIT_AUTHOR_NAME"] == environment["GIT_COMMITTER_NAME"] == "Ann Müller"
    assert environment["GIT_AUTHOR_EMAIL"] == environment["GIT_COMMITTER_EMAIL"] == "ann@example.com"
    assert environment["TMPDIR"] == "/other"
    assert "secret" not in environment.values()
