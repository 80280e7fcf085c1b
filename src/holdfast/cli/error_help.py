"""Explanations of error codes, loaded from error_help.toml: what happened, why, and what to do."""

import tomllib
from pathlib import Path

import msgspec

from holdfast.core import Value


class ErrorHelp(Value, rename={"todo": "do"}):
    """The explanation of one error code."""

    what: str
    why: str
    todo: str


def load_error_help() -> dict[str, ErrorHelp]:
    """The explanations by error code."""
    text = Path(__file__).with_name("error_help.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, ErrorHelp])
