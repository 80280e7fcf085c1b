"""`holdfast init` and `holdfast config`: files to start from, values in effect, and positions of mistakes."""

import io
import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.commands import Run, run
from tests.cli.test_task import runs, script

from holdfast.config import ConfigField, config_text, fields, load_config, with_value
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


def test_init_writes_files_that_list_every_field_and_change_no_default(run: Run, tmp_path: Path) -> None:
    done = run("init")
    assert done.code == 0
    assert done.out.split() == [f"{tmp_path}/holdfast/config.toml", f"{tmp_path}/holdfast/policies/mine.yaml"]
    home = Home(tmp_path / "holdfast")
    assert load_config(home, {}) == Settings(policy="mine")
    assert run("policy", "test", "mine").code == 0
    text = home.config.read_text()
    for field in fields():
        assert re.search(rf"^(# )?{field.key.rpartition('.')[2]} = ", text, re.MULTILINE), field.key


def test_every_commented_line_of_the_template_is_valid() -> None:
    text = re.sub(r"^# (\w+ = )", r"\1", config_text("mine"), flags=re.MULTILINE)
    assert tomllib.loads(text)["budget"]["tokens"] == 1_000_000


def test_init_never_overwrites_a_file(run: Run, tmp_path: Path) -> None:
    written(tmp_path, "# precious\n")
    done = run("init")
    assert (tmp_path / "holdfast" / "config.toml").read_text() == "# precious\n"
    assert "already exists, not changed" in done.err


def test_init_dry_run_writes_nothing(run: Run, tmp_path: Path) -> None:
    done = run("init", "--dry-run")
    assert 'policy = "mine"' in done.out
    assert "read-inside" in done.out
    assert not (tmp_path / "holdfast").exists()


def test_init_for_a_project_writes_a_policy_with_valid_examples(run: Run, tmp_path: Path) -> None:
    assert run("init", "--project").code == 0
    assert run("policy", "test", ".holdfast/policy.yaml").code == 0
    assert load_config(Home(tmp_path / "holdfast"), {}, project=tmp_path) == Settings()


def test_a_project_can_only_lower_limits(run: Run, tmp_path: Path) -> None:
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


def test_a_pipe_instead_of_a_configuration_is_refused_without_waiting(tmp_path: Path) -> None:
    home = written(tmp_path, "")
    project = tmp_path / ".holdfast" / "config.toml"
    project.parent.mkdir()
    os.mkfifo(project)
    with pytest.raises(InvalidConfig, match="not a regular file"):
        load_config(home, {}, project=tmp_path)
    home.config.unlink()
    os.mkfifo(home.config)
    with pytest.raises(InvalidConfig, match="not a regular file"):
        load_config(home, {})


def test_the_source_of_each_value_is_shown(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, 'sandbox = "lisp"\n')
    monkeypatch.setenv("HOLDFAST_POLICY", "safe-edit")
    rows = {row["key"]: row for row in json.loads(run("config", "--json").out)}
    assert rows["sandbox"]["source"].endswith("config.toml:1:11")
    assert (rows["policy"]["value"], rows["policy"]["source"]) == ("safe-edit", "$HOLDFAST_POLICY")
    assert rows["acts_with"]["source"] == "default"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "nothing-of-worth")
    rows = {row["key"]: row for row in json.loads(run("config", "show", "--json").out)}
    assert "anthropic" in rows["model"]["value"]
    assert "key for anthropic" in rows["model"]["source"]
    assert "nothing-of-worth" not in run("config").out


def test_f25_a_limit_is_set_and_shown_where_the_file_names_it_by_its_short_word(
    run: Run, tmp_path: Path
) -> None:
    written(tmp_path, "[budget]\ntokens = 5\nusd = 1 # mine\n")
    assert run("config", "set", "budget.usd", "3").code == 0
    assert (tmp_path / "holdfast" / "config.toml").read_text() == "[budget]\ntokens = 5\nusd = 3.0 # mine\n"
    rows = {row["key"]: row for row in json.loads(run("config", "--json").out)}
    assert rows["budget.cost_usd"]["source"].endswith("config.toml:3:7")


def test_setting_a_value_keeps_comments_and_layout(run: Run, tmp_path: Path) -> None:
    run("init")
    before = (tmp_path / "holdfast" / "config.toml").read_text()
    assert run("config", "set", "budget.cost_usd", "2.50").code == 0
    assert run("config", "get", "budget.cost_usd").out == "2.5\n"
    after = (tmp_path / "holdfast" / "config.toml").read_text()
    assert after == re.sub(r"(\[budget\][^[]*# cost_usd = \S+\n)", r"\1cost_usd = 2.5\n", before, count=1)
    assert run("config", "path").out == f"{tmp_path}/holdfast/config.toml\n"


def test_files_may_start_with_a_byte_order_mark(run: Run, tmp_path: Path) -> None:
    home, project = written(tmp_path, ""), tmp_path / "project"
    project.mkdir()
    for path, text in (
        (home.config, 'policy = "project"\n'),
        (home.root / "mcp-servers.json", '{"mcpServers": {"one": {"command": "none"}}}'),
        (home.root / "teams.yaml", f"teams:\n  a: {{project: {project}, member: scripted}}\n"),
        (tmp_path / "own.yaml", "policy: own\nrules:\n  - {name: reads, allow: world.read}\n"),
    ):
        path.write_text(text, encoding="utf-8-sig")
    assert run("config", "get", "policy").out == "project\n"
    assert run("config", "set", "policy", "ask-always").code == 0
    assert run("config", "get", "policy").out == "ask-always\n"
    assert run("mcp", "list").code == 0
    assert run("mcp", "remove", "one").code == 0
    assert run("teams", "add", "b", str(project)).code == 0
    assert run("teams", "check").code == 0
    assert run("policy", "show", "own.yaml").out.startswith("policy: own\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("polcy", "x"), "did you mean policy?"),
        (("budget.tokens", "many"), "is not a quantity of tokens"),
        (("acts_with", "fast"), "code or tools"),
        (("budget.calls", "-3"), "is not a quantity of calls"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(
    run: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = run("config", "set", "--", *words)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "holdfast" / "config.toml").exists()


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("polcy = 'x'\n", "1:9: there is no field 'polcy'"),
        ("# a\n\n[budget]\ntokens = 'many'\n", "4:10: 'many' is not a quantity of tokens"),
        ("[budget]\ntokns = 4\n", "2:9: there is no field 'budget.tokns'"),
        ("budget = 'usd=1'\n", "1:10: budget is a table of limits, not text"),
        ("budget = {calls = -3}\n", "1:10: a limit is 0 or more, but calls is -3"),
        ("[budget]\n\ntime = -3\n", "3:8: a limit is 0 or more, but time is -3"),
        ("[model_requests]\nmax_attempts = true\n", "2:16: Expected `int`"),
        ("[asking]\nattempts = true\n", "2:12: Expected `int`"),
        ("[asking]\nattemps = 3\n", "2:11: there is no field 'model_requests.attemps'"),
        ("asking = 3\n", "1:10: there is no field 'asking'"),
        ("policy = \n", "1:10: Invalid value"),
        ("a = [\n", "1:6: "),
    ],
)
def test_a_mistake_in_the_file_is_reported_with_line_and_column(
    run: Run, tmp_path: Path, text: str, position: str
) -> None:
    written(tmp_path, text)
    done = run("config")
    assert done.code == 2
    assert f"config.toml:{position}" in done.err
    assert "hint:" in done.err


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.sampled_from([field for field in fields() if field.default not in (None, {})]),
        max_size=6,
        unique=True,
    )
)
def test_values_set_one_after_the_other_are_all_kept(chosen: list[ConfigField]) -> None:
    text = ""
    for field in chosen:
        text = with_value(text, field.key, field.default)  # type: ignore[arg-type]  # a scalar, as it is in TOML
    table = tomllib.loads(text)
    for field in chosen:
        value: object = table
        for name in field.key.split("."):
            value = value[name] if isinstance(value, dict) else None
        assert value == (list(field.default) if isinstance(field.default, tuple) else field.default)


def test_a_project_can_forbid_what_the_persons_policy_allows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code = "try:\n    open('.env').read()\nexcept PermissionError as no:\n    print(no)\nopen('a.txt').read()"
    model = script(tmp_path, runs(code), "Read.")
    work = tmp_path / "work"
    (work / ".holdfast").mkdir(parents=True)
    (work / ".env").write_text("KEY=canary")
    (work / "a.txt").write_text("harmless")
    words = ("-m", model, "-w", "work", "--trust", "read it")
    before = run(*words)
    assert "allow   world.read path=/workspace/.env" in before.err, before.err
    assert run("init", "--project", "work").code == 0
    done = run(*words)
    assert "path=/workspace/.env\n          rule secrets: keys and passwords" in done.err, done.err
    assert "allow   world.read path=/workspace/.env" not in done.err
    assert "allow   world.read path=/workspace/a.txt" in done.err


def test_a_negative_number_is_refused_and_the_file_is_kept(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, "call_seconds = 5\n")
    done = run("config", "set", "call_seconds", "-1")
    assert (done.code, "call_seconds must be 0 or more" in done.err) == (2, True)
    assert home.config.read_text() == "call_seconds = 5\n"
    home.config.write_text("escalation_seconds = -3.5\n")
    with pytest.raises(InvalidConfig, match=r"config.toml:1:22: escalation_seconds must be 0 or more"):
        load_config(home, {})


OLD_NAMES = """\
max_tokens = 7000
[asking]  # of version 0.1
attempts = 3
total_seconds = 60.0  # a minute
max_tokens = 9000
temperature = 0.5
model = "ollama:qwen3"
"""


def test_the_old_name_of_how_the_model_acts_is_read(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, 'mode = "tools"\n')
    assert load_config(home, {}).acts_with == "tools"
    assert f"note: {home.config}:1: mode is now called acts_with\n" in run("config").err
    assert run("config", "set", "acts_with", "code").code == 0
    assert home.config.read_text() == 'acts_with = "code"\n'


def test_old_names_are_read_with_a_note_that_names_the_new_key(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, OLD_NAMES)
    assert f"note: {home.config}:3: asking.attempts is now called" in run("model", "prices").err
    settings = load_config(home, {})
    requests = settings.model_requests
    assert (requests.max_attempts, requests.timeout_seconds, requests.temperature) == (3, 60.0, 0.5)
    assert (requests.max_tokens, settings.model) == (7000, "ollama:qwen3")
    done = run("config")
    assert re.search(r"model_requests\.max_attempts +3 +config\.toml:3:12", done.out)
    for line, old, new in (
        (1, "max_tokens", "model_requests.max_tokens"),
        (3, "asking.attempts", "model_requests.max_attempts"),
        (4, "asking.total_seconds", "model_requests.timeout_seconds"),
        (5, "asking.max_tokens", "model_requests.max_tokens"),
        (7, "asking.model", "model"),
    ):
        assert f"note: {home.config}:{line}: {old} is now called {new}\n" in done.err
    assert run("config", "get", "asking.attempts").out == "3\n"


def test_a_new_name_takes_precedence_over_the_old_one(tmp_path: Path) -> None:
    home = written(tmp_path, "[model_requests]\nmax_attempts = 2\n[asking]\nattempts = 3\n")
    assert load_config(home, {}).model_requests.max_attempts == 2


def test_an_unused_old_table_is_read_without_a_note(run: Run, tmp_path: Path) -> None:
    written(tmp_path, "[asking]\n# attempts = 5\n")
    done = run("config")
    assert (done.code, "note:" in done.err) == (0, False)


def test_config_set_writes_the_new_name_and_removes_the_old_one(run: Run, tmp_path: Path) -> None:
    home = written(tmp_path, OLD_NAMES)
    assert run("config", "set", "asking.attempts", "4").code == 0
    assert run("config", "set", "model_requests.max_tokens", "8000").code == 0
    text = home.config.read_text()
    assert text.startswith(
        "[asking]  # of version 0.1\ntotal_seconds = 60.0  # a minute\ntemperature = 0.5\n"
    )
    assert text.endswith("\n[model_requests]\nmax_attempts = 4\nmax_tokens = 8000\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[budget]\ncalls = 7\n"),
        ("# mine", "# mine\n\n[budget]\ncalls = 7\n"),
        ("[budget]\n  tokens = 5 # few\n\n# code\n[code]\n", "[budget]\n  tokens = 5 # few\ncalls = 7\n\n# code\n[code]\n"),
        ("[budget]\ncalls=3   # three\n", "[budget]\ncalls=7   # three\n"),
        ("budget = { tokens = 5 }\n", "budget = { tokens = 5, calls = 7}\n"),
        ("budget.tokens = 5\nmode = 'code'\n", "budget.tokens = 5\nbudget.calls = 7\nmode = 'code'\n"),
    ],
)  # fmt: skip
def test_a_value_is_set_in_any_layout(before: str, after: str) -> None:
    assert with_value(before, "budget.calls", 7) == after
