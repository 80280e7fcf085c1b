"""The configuration of a person: config.toml, then the environment. A program that embeds Holdfast says its own."""

import os
import tomllib
from collections.abc import Mapping

import msgspec

from holdfast.core.errors import InvalidConfig
from holdfast.session import Settings
from holdfast.store import Home


def load_config(home: Home, environ: Mapping[str, str] | None = None) -> Settings:
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
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {error}", hint="see docs/reference/config.md") from error
