"""API keys, model specs, and the default model."""

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
    DEFAULT_MODELS,
    ModelSettings,
    Prompt,
    create_model,
    parse_spec,
    price,
    resolve_model,
    secrets,
)


def test_the_environment_takes_precedence_over_the_configuration() -> None:
    environ = {"HOLDFAST_MODEL": "ollama:qwen3", "ANTHROPIC_API_KEY": "k"}
    assert resolve_model(environ, "openai:gpt-6-luna") == "ollama:qwen3"
    assert resolve_model({"ANTHROPIC_API_KEY": "k"}, "openai:gpt-6-luna") == "openai:gpt-6-luna"


@pytest.mark.parametrize(
    ("variable", "provider"),
    [("ANTHROPIC_API_KEY", "anthropic"), ("OPENAI_API_KEY", "openai"), ("GOOGLE_API_KEY", "google")],
)
def test_a_key_selects_the_default_model_of_its_provider(variable: str, provider: str) -> None:
    chosen = resolve_model({variable: "key"})
    assert chosen is not None
    assert parse_spec(chosen).provider == provider


def test_without_a_key_there_is_no_default_model() -> None:
    assert resolve_model({}) is None
    assert resolve_model({"ANTHROPIC_API_KEY": "  ", "HOLDFAST_MODEL": ""}) is None


def test_default_models_have_a_price_and_a_context_window() -> None:
    for spec in DEFAULT_MODELS:
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
def test_an_invalid_spec_is_refused_with_a_hint(text: str) -> None:
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
def test_a_parsed_spec_is_written_back_unchanged(text: str) -> None:
    assert str(parse_spec(text)) == text


@pytest.mark.parametrize(
    "address", ["http://gateway.example/v1", "https://user:hunter2@gateway.example/v1", "gateway.example"]
)
def test_an_address_that_would_expose_a_key_or_prompt_is_refused(address: str) -> None:
    environ = {"ANTHROPIC_API_KEY": "key"}
    with pytest.raises(InvalidConfig) as caught:
        create_model("anthropic:claude-sonnet-5-5", settings=ModelSettings(base_url=address), environ=environ)
    with pytest.raises(InvalidConfig):
        create_model("anthropic:claude-sonnet-5-5", environ=environ | {"ANTHROPIC_BASE_URL": address})
    assert "hunter2" not in str(caught.value)


def test_a_missing_key_is_reported_with_the_variable_to_set() -> None:
    with pytest.raises(ModelMissing) as caught:
        create_model("google:gemini-3.8-flash", environ={})
    assert caught.value.hint is not None
    assert "$GEMINI_API_KEY" in caught.value.hint


def test_a_provider_whose_library_is_an_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "google.genai", raising=False)
    with pytest.raises(ModelMissing) as caught:
        create_model("google:gemini-3.8-flash", environ={"GEMINI_API_KEY": "key"})
    assert caught.value.hint == "pip install 'holdfast[google]'"


def test_a_configured_key_variable_has_no_fallback() -> None:
    settings = ModelSettings(key_variable="WORK_KEY")
    with pytest.raises(ModelMissing, match="WORK_KEY"):
        create_model(
            "anthropic:claude-sonnet-5-5", settings=settings, environ={"ANTHROPIC_API_KEY": "private"}
        )


def test_a_key_is_read_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_secrets_are_the_values_of_all_keys_without_duplicates() -> None:
    environ = {
        "ANTHROPIC_API_KEY": "sk-ant-0123456789",
        "OPENAI_API_KEY": "sk-ant-0123456789",
        "GOOGLE_API_KEY": "short",
        "MINE": "my-own-key-1",
        "PATH": "/usr/bin:/bin",
    }
    assert secrets(environ) == ("sk-ant-0123456789",)
    assert set(secrets(environ, ModelSettings(key_variable="MINE"))) == {"sk-ant-0123456789", "my-own-key-1"}


async def test_a_script_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(["hello"]))
    model = create_model(f"scripted:{path}")
    assert (await model.ask(Prompt(system="", messages=()), lambda _: None)).message.text == "hello"
    path.write_text("{}")
    with pytest.raises(InvalidConfig):
        create_model(f"scripted:{path}")


def test_importing_models_loads_no_provider_library() -> None:
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
