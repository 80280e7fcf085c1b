"""Keys, specs and which model follows from them."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.core.errors import InvalidConfig, ModelMissing
from holdfast.models import (
    ModelSettings,
    Prompt,
    create_model,
    parse_spec,
    price,
    resolve_model,
    secrets,
)
from holdfast.models.keys import DEFAULTS


def test_the_environment_goes_before_the_configuration() -> None:
    settings = ModelSettings(model="openai:gpt-6-luna")
    environ = {"HOLDFAST_MODEL": "ollama:qwen3", "ANTHROPIC_API_KEY": "k"}
    assert resolve_model(environ, settings) == "ollama:qwen3"
    assert resolve_model({"ANTHROPIC_API_KEY": "k"}, settings) == "openai:gpt-6-luna"


@pytest.mark.parametrize(
    ("variable", "provider"),
    [("ANTHROPIC_API_KEY", "anthropic"), ("OPENAI_API_KEY", "openai"), ("GOOGLE_API_KEY", "google")],
)
def test_a_key_alone_chooses_a_model_of_its_provider(variable: str, provider: str) -> None:
    chosen = resolve_model({variable: "key"})
    assert chosen is not None
    assert parse_spec(chosen).provider == provider


def test_without_a_key_no_model_is_chosen() -> None:
    assert resolve_model({}) is None
    assert resolve_model({"ANTHROPIC_API_KEY": "  ", "HOLDFAST_MODEL": ""}) is None


def test_models_chosen_by_a_key_have_a_price_and_a_window() -> None:
    for spec in DEFAULTS.values():
        listed = price(spec)
        assert listed is not None
        assert listed.context_tokens is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpt-5",
        "anthropic:",
        "unknown:x",
        "server:http://127.0.0.1:8080/v1",
        "server:ftp://127.0.0.1/#x",
        "server:http://user:word@127.0.0.1/#x",
        "server:http://models.example/v1#x",
    ],
)
def test_what_names_no_model_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_spec(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "anthropic:claude-sonnet-5-5",
        "ollama:qwen3:8b",
        "server:http://127.0.0.1:8080/v1#org/model:tag",
        "server:https://models.example/v1#x",
        "local:/models/a.gguf",
    ],
)
def test_a_spec_is_written_as_it_was_read(text: str) -> None:
    assert str(parse_spec(text)) == text


@pytest.mark.parametrize(
    "address", ["http://gateway.example/v1", "https://user:hunter2@gateway.example/v1", "gateway.example"]
)
def test_an_address_that_would_give_something_away_is_refused(address: str) -> None:
    environ = {"ANTHROPIC_API_KEY": "key"}
    with pytest.raises(InvalidConfig) as caught:
        create_model("anthropic:claude-sonnet-5-5", settings=ModelSettings(base_url=address), environ=environ)
    with pytest.raises(InvalidConfig):
        create_model("anthropic:claude-sonnet-5-5", environ=environ | {"ANTHROPIC_BASE_URL": address})
    assert "hunter2" not in str(caught.value)


def test_a_missing_key_says_which_variable_to_set() -> None:
    with pytest.raises(ModelMissing) as caught:
        create_model("google:gemini-3.8-flash", environ={})
    assert caught.value.hint is not None
    assert "$GEMINI_API_KEY" in caught.value.hint


def test_a_key_variable_of_ones_own_is_used_and_its_absence_is_no_other_key() -> None:
    settings = ModelSettings(key_variable="WORK_KEY")
    with pytest.raises(ModelMissing, match="WORK_KEY"):
        create_model(
            "anthropic:claude-sonnet-5-5", settings=settings, environ={"ANTHROPIC_API_KEY": "private"}
        )


def test_a_key_may_stand_in_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {("holdfast", "anthropic"): "from-the-ring\n"}
    ring = SimpleNamespace(
        get_password=lambda service, user: stored.get((service, user)),
        errors=SimpleNamespace(KeyringError=RuntimeError),
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)
    keys = importlib.import_module("holdfast.models.keys")
    assert keys.find_key("anthropic", {}, ModelSettings()) == "from-the-ring"
    with pytest.raises(ModelMissing):
        keys.find_key("openai", {}, ModelSettings())


def test_secrets_are_the_exact_keys_once_each() -> None:
    environ = {
        "ANTHROPIC_API_KEY": "sk-ant-0123456789",
        "OPENAI_API_KEY": "sk-ant-0123456789",
        "GOOGLE_API_KEY": "short",
        "MINE": "my-own-key-1",
        "PATH": "/usr/bin:/bin",
    }
    assert secrets(environ) == ("sk-ant-0123456789",)
    assert set(secrets(environ, ModelSettings(key_variable="MINE"))) == {"sk-ant-0123456789", "my-own-key-1"}


async def test_a_script_in_a_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(["hello"]))
    model = create_model(f"scripted:{path}")
    assert (await model.ask(Prompt(system="", messages=()), lambda _: None)).message.text == "hello"
    path.write_text("{}")
    with pytest.raises(InvalidConfig):
        create_model(f"scripted:{path}")


def test_the_door_loads_no_library_of_a_provider() -> None:
    heavy = (
        "pydantic_ai",
        "anthropic",
        "openai",
        "google.genai",
        "httpx",
        "httpx2",
        "genai_prices",
        "pydantic",
    )
    program = f"import sys, holdfast.models; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"
