"""`holdfast init` and `holdfast config`: files to start from, what is in force, and where mistakes stand."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.commands import Run, run
from tests.cli.test_task import holdfast, runs, script

from holdfast.config import Field, config_text, fields, load_config, with_value
from holdfast.core import Limits
from holdfast.core.errors import InvalidConfig
from holdfast.session import Settings
from holdfast.store import Home

__all__ = ["run"]


def written(tmp_path: Path, text: str) -> Home:
    home = Home(tmp_path / "holdfast")
    home.prepare()
    home.config.write_text(text)
    return home


def test_init_writes_files_that_say_everything_and_change_nothing(run: Run, tmp_path: Path) -> None:
    done = run("init")
    assert done.code == 0
    assert done.out.split() == [f"{tmp_path}/holdfast/config.toml", f"{tmp_path}/holdfast/policies/mine.yaml"]
    home = Home(tmp_path / "holdfast")
    assert load_config(home, {}) == Settings(policy="mine")
    assert run("policy", "test", "mine").code == 0
    text = home.config.read_text()
    for field in fields():
        if field.key != "asking.model":
            assert re.search(rf"^(# )?{field.key.rpartition('.')[2]} = ", text, re.MULTILINE), field.key


def test_every_line_of_the_draft_can_be_taken_as_it_stands() -> None:
    text = re.sub(r"^# (\w+ = )", r"\1", config_text("mine"), flags=re.MULTILINE)
    assert tomllib.loads(text)["budget"]["tokens"] == 1_000_000


def test_init_never_replaces_a_file(run: Run, tmp_path: Path) -> None:
    written(tmp_path, "# precious\n")
    done = run("init")
    assert (tmp_path / "holdfast" / "config.toml").read_text() == "# precious\n"
    assert "left as it is" in done.err


def test_init_shows_without_writing(run: Run, tmp_path: Path) -> None:
    done = run("init", "--dry-run")
    assert 'policy = "mine"' in done.out
    assert "read-inside" in done.out
    assert not (tmp_path / "holdfast").exists()


def test_init_for_a_project_writes_a_policy_whose_examples_hold(run: Run, tmp_path: Path) -> None:
    assert run("init", "--project").code == 0
    assert run("policy", "test", ".holdfast/policy.yaml").code == 0
    assert load_config(Home(tmp_path / "holdfast"), {}, project=tmp_path) == Settings()


def test_a_project_can_only_narrow_what_may_be_spent(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, "[budget]\ntokens = 100\n")
    project = tmp_path / ".holdfast" / "config.toml"
    project.parent.mkdir()
    project.write_text("[budget]\ntokens = 5000\ncalls = 7\n")
    assert load_config(home, {}, project=tmp_path).budget == Limits(tokens=100, calls=7)
    done = run("config", "-w", ".")
    assert re.search(r"budget\.calls +7 +\.holdfast/config\.toml:3:9", done.out)
    assert re.search(r"budget\.tokens +100 +config\.toml:2:10", done.out)
    project.write_text("model = 'server:http://elsewhere/v1#m'\n")
    with pytest.raises(InvalidConfig, match=r"config\.toml:1:9: there is no field 'model'") as refused:
        load_config(home, {}, project=tmp_path)
    assert "a project may only set limits" in str(refused.value.hint)


def test_a_pipe_in_the_place_of_a_configuration_is_told_and_not_waited_for(tmp_path: Path) -> None:
    home = written(tmp_path, "")
    project = tmp_path / ".holdfast" / "config.toml"
    project.parent.mkdir()
    os.mkfifo(project)
    with pytest.raises(InvalidConfig, match="it is no plain file"):
        load_config(home, {}, project=tmp_path)
    home.config.unlink()
    os.mkfifo(home.config)
    with pytest.raises(InvalidConfig, match="it is no plain file"):
        load_config(home, {})


def test_the_source_of_each_value_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, 'sandbox = "lisp"\n')
    monkeypatch.setenv("HOLDFAST_POLICY", "safe-edit")
    rows = {row["key"]: row for row in json.loads(run("config", "--json").out)}
    assert rows["sandbox"]["source"].endswith("config.toml:1:11")
    assert (rows["policy"]["value"], rows["policy"]["source"]) == ("safe-edit", "$HOLDFAST_POLICY")
    assert rows["mode"]["source"] == "default"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "nothing-of-worth")
    rows = {row["key"]: row for row in json.loads(run("config", "show", "--json").out)}
    assert "anthropic" in rows["model"]["value"]
    assert "key for anthropic" in rows["model"]["source"]
    assert "nothing-of-worth" not in run("config").out


def test_a_value_is_set_and_comments_stay(run: Run, tmp_path: Path) -> None:
    run("init")
    before = (tmp_path / "holdfast" / "config.toml").read_text()
    assert run("config", "set", "budget.cost_usd", "2.50").code == 0
    assert run("config", "get", "budget.cost_usd").out == "2.5\n"
    after = (tmp_path / "holdfast" / "config.toml").read_text()
    assert set(before.splitlines()) < set(after.splitlines())
    assert run("config", "path").out == f"{tmp_path}/holdfast/config.toml\n"


def test_files_that_a_person_writes_may_begin_with_a_byte_order_mark(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, "")
    for path, text in (
        (home.config, 'policy = "project"\n'),
        (home.root / "mcp-servers.json", '{"mcpServers": {"one": {"command": "none"}}}'),
        (home.root / "teams.yaml", f"teams:\n  a: {{project: {tmp_path}, member: scripted}}\n"),
        (tmp_path / "own.yaml", "policy: own\nrules:\n  - {name: reads, allow: world.read}\n"),
    ):
        path.write_text(text, encoding="utf-8-sig")
    assert run("config", "get", "policy").out == "project\n"
    assert run("config", "set", "policy", "ask-always").code == 0
    assert run("config", "get", "policy").out == "ask-always\n"
    assert run("mcp", "list").code == 0
    assert run("mcp", "remove", "one").code == 0
    assert run("teams", "add", "b", str(tmp_path)).code == 0
    assert run("teams", "check").code == 0
    assert run("policy", "show", "own.yaml").out.startswith("policy: own\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("polcy", "x"), "did you mean policy?"),
        (("budget.tokens", "many"), "whole number"),
        (("mode", "fast"), "code or tools"),
        (("budget.calls", "-3"), "cannot be negative"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(
    run: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = run("config", "set", "--", *words)
    assert done.code == 2
    assert told in done.err
    assert not (tmp_path / "holdfast" / "config.toml").exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("polcy = 'x'\n", "1:9: there is no field 'polcy'"),
        ("# a\n\n[budget]\ntokens = 'many'\n", "4:10: Expected `int | null`"),
        ("[budget]\ntokns = 4\n", "2:9: there is no field 'budget.tokns'"),
        ("budget = {calls = -3}\n", "1:10: a limit cannot be negative or NaN"),
        ("[asking]\nattempts = true\n", "2:12: Expected `int`"),
        ("policy = \n", "1:10: Invalid value"),
        ("a = [\n", "1:6: "),
    ],
)
def test_a_mistake_in_the_file_is_named_with_line_and_column(
    run: Run, tmp_path: Path, text: str, place: str
) -> None:
    written(tmp_path, text)
    done = run("config")
    assert done.code == 2
    assert f"config.toml:{place}" in done.err
    assert "hint:" in done.err


@given(
    st.lists(
        st.sampled_from([field for field in fields() if field.default is not None]), max_size=6, unique=True
    )
)
def test_values_set_one_after_the_other_are_all_there(chosen: list[Field]) -> None:
    text = ""
    for field in chosen:
        text = with_value(text, field.key, field.default)  # type: ignore[arg-type]  # a scalar, as it is in TOML
    table = tomllib.loads(text)
    for field in chosen:
        value: object = table
        for name in field.key.split("."):
            value = value[name] if isinstance(value, dict) else None
        assert value == field.default


def test_what_a_project_forbids_is_forbidden_whatever_the_persons_policy_says(tmp_path: Path) -> None:
    code = "try:\n    open('.env').read()\nexcept PermissionError as no:\n    print(no)\nopen('a.txt').read()"
    model = script(tmp_path, runs(code), "Read.")
    work = tmp_path / "work"
    (work / ".holdfast").mkdir(parents=True)
    (work / ".env").write_text("KEY=canary")
    (work / "a.txt").write_text("harmless")
    words = ("-m", model, "-w", "work", "--trust", "read it")
    open_before = holdfast(*words, home=tmp_path)
    assert "allow   world.read path=/workspace/.env" in open_before.stderr, open_before.stderr
    assert holdfast("init", "--project", "work", home=tmp_path).returncode == 0
    done = holdfast(*words, home=tmp_path)
    assert "path=/workspace/.env\n          rule secrets: keys and passwords" in done.stderr, done.stderr
    assert "allow   world.read path=/workspace/.env" not in done.stderr
    assert "allow   world.read path=/workspace/a.txt" in done.stderr


def test_a_number_below_nothing_is_refused_and_the_file_stays(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, "call_seconds = 5\n")
    done = run("config", "set", "call_seconds", "-1")
    assert (done.code, "call_seconds has to be 0 or more" in done.err) == (2, True)
    assert home.config.read_text() == "call_seconds = 5\n"
    home.config.write_text("escalation_seconds = -3.5\n")
    with pytest.raises(InvalidConfig, match=r"config.toml:1:22: escalation_seconds has to be 0 or more"):
        load_config(home, {})
