"""The configuration: config.toml, then the environment, then what the caller says. Frozen once it is read."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.core import Limits, Value
from holdfast.core.errors import InvalidConfig
from holdfast.models import ModelSettings
from holdfast.store import Home


class Config(Value, forbid_unknown_fields=True):
    """What can be set in config.toml. Every field has a default that is safe to keep."""

    model: str | None = None
    """`provider:name`; $HOLDFAST_MODEL goes before it. None looks for a key in the environment."""
    asking: ModelSettings = ModelSettings()
    """How a model is asked: address, time limits, attempts, size of a reply."""
    policy: str = "project"
    """A named policy or a file."""
    sandbox: Literal["python", "wasi", "auto"] = "python"
    mode: Literal["code", "tools"] = "code"
    """How the model acts: by writing Python, or by calling tools one by one."""
    max_tokens: int | None = None
    """Of one reply."""
    escalation_seconds: float = 300.0
    """How long a call waits for a person."""
    call_seconds: float = 60.0
    """How long a tool may take."""
    budget: Limits = Limits()
    """Of a session."""
    turn_budget: Limits = Limits(steps=50, calls=1000)
    """Of one turn."""


def load_config(home: Home, environ: Mapping[str, str] | None = None) -> Config:
    """Read config.toml and the environment. Raises InvalidConfig, naming the file and the field."""
    environ = os.environ if environ is None else environ
    path = home.config
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: {error}", hint="fix the line, or move the file away") from error
    if environ.get("HOLDFAST_POLICY"):
        table["policy"] = environ["HOLDFAST_POLICY"]
    try:
        return msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {error}", hint="see docs/reference/config.md") from error


def home_of(root: str | Path | None) -> Home:
    """The home to use: the one given, else the default."""
    return Home(Path(root)) if root is not None else Home.default()
