"""`holdfast model`, through the entry point of the command line."""

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.cli import main
from holdfast.models import use
from holdfast.models.keys import key_variables

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty data directory, and no API key."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HOLDFAST_MODEL", raising=False)
    for name in key_variables():
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


def test_a_model_that_calls_the_tool_passes_the_check(capsys: Captured, tmp_path: Path) -> None:
    assert main(["model", "check", script(tmp_path, [use("add", {"a": 19, "b": 23})])]) == 0
    assert "uses tools  yes" in capsys.readouterr().out


def test_a_model_that_only_answers_fails_the_check(capsys: Captured, tmp_path: Path) -> None:
    assert main(["model", "check", script(tmp_path, ["It is 42."])]) == 1
    assert "uses tools  no" in capsys.readouterr().out


def test_without_a_model_the_check_fails_with_a_hint(capsys: Captured) -> None:
    assert main(["model", "check"]) == 6
    assert "hint:" in capsys.readouterr().err


def test_prices_show_their_source_and_unknown_ones(capsys: Captured) -> None:
    assert main(["model", "prices", "anthropic:claude-sonnet-5-5", "openai:no-such-model", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    known, unknown = found["prices"]
    assert float(known["input_usd"]) > 0
    assert unknown["input_usd"] is None
    assert found["list"]["source"].startswith("genai-prices")


def test_gguf_files_in_the_models_folder_are_listed(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "home" / "models").mkdir(parents=True)
    (tmp_path / "home" / "models" / "tiny.gguf").write_bytes(b"GGUF")
    assert main(["model", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["installed"] == ["local:tiny"]
