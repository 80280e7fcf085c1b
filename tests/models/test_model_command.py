"""`holdfast model`, through the entry of the command line."""

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.cli import main
from holdfast.models import use
from holdfast.models.keys import VARIABLES

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and no key."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HOLDFAST_MODEL", raising=False)
    for names in VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def script(tmp_path: Path, replies: list[object]) -> str:
    path = tmp_path / "script.json"
    path.write_bytes(msgspec.json.encode(replies))
    return f"scripted:{path}"


def test_the_list_names_providers_with_a_key_and_never_the_key(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-must-not-show")
    assert main(["model", "list", "--json"]) == 0
    out, err = capsys.readouterr()
    listed = json.loads(out)
    assert listed["keys"] == ["anthropic"]
    assert listed["configured"].startswith("anthropic:")
    assert "must-not-show" not in out + err


def test_a_model_that_answers_and_calls_passes_the_check(capsys: Captured, tmp_path: Path) -> None:
    assert main(["model", "check", script(tmp_path, [use("add", {"a": 19, "b": 23})])]) == 0
    assert "uses tools  yes" in capsys.readouterr().out


def test_a_model_that_only_talks_does_not_pass(capsys: Captured, tmp_path: Path) -> None:
    assert main(["model", "check", script(tmp_path, ["It is 42."])]) == 1
    assert "uses tools  no" in capsys.readouterr().out


def test_without_a_model_there_is_nothing_to_check(capsys: Captured) -> None:
    assert main(["model", "check"]) == 6
    assert "hint:" in capsys.readouterr().err


def test_prices_say_where_they_are_from_and_what_is_unknown(capsys: Captured) -> None:
    assert main(["model", "prices", "anthropic:claude-sonnet-5-5", "openai:no-such-model", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    known, unknown = found["prices"]
    assert float(known["input_usd"]) > 0
    assert unknown["input_usd"] is None
    assert found["list"]["source"].startswith("genai-prices")


def test_a_file_that_is_not_the_weights_is_not_installed(capsys: Captured, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF but another")
    assert main(["model", "install", "--file", str(other)]) == 1
    assert "SHA-256" in capsys.readouterr().err
    assert not list((tmp_path / "home").rglob("*.gguf"))


def test_weights_nobody_knows_are_a_mistake_of_the_command_line(capsys: Captured) -> None:
    assert main(["model", "install", "no-such"]) == 2
