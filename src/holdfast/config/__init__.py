"""What a person configured: config.toml, the environment, and what a project narrows. A program that embeds Holdfast says its own."""

from holdfast.config.edit import Scalar, with_value
from holdfast.config.load import (
    PROJECT_CONFIG,
    Configured,
    ProjectSettings,
    check_config,
    load_config,
    read_config,
    written_key,
)
from holdfast.config.schema import Field, fields, tables
from holdfast.config.templates import PROJECT_CONFIG_TEXT, PROJECT_POLICY_TEXT, config_text, policy_draft

__all__ = [
    "PROJECT_CONFIG",
    "PROJECT_CONFIG_TEXT",
    "PROJECT_POLICY_TEXT",
    "Configured",
    "Field",
    "ProjectSettings",
    "Scalar",
    "check_config",
    "config_text",
    "fields",
    "load_config",
    "policy_draft",
    "read_config",
    "tables",
    "with_value",
    "written_key",
]
