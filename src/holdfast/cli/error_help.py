"""What error codes mean, in words: what happened, why, and what to do. The texts stand in error_help.toml."""

import tomllib
from pathlib import Path

import msgspec

from holdfast.core import Value


class ErrorHelp(Value, rename={"todo": "do"}):
    """One error code in words."""

    what: str
    why: str
    todo: str


def load_error_help() -> dict[str, ErrorHelp]:
    """Every error code and what it means."""
    text = Path(__file__).with_name("error_help.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, ErrorHelp])
