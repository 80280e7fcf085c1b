"""A person's configuration: config.toml, the environment, and a project's own limits.

A program that embeds Holdfast reads the same files, or passes `Settings` instead.
"""

from holdfast.config.edit import Setting, with_value
from holdfast.config.load import (
    PROJECT_CONFIG,
    Configured,
    ProjectSettings,
    check_config,
    load_config,
    project_budget,
    read_config,
    written_key,
)
from holdfast.config.renamed_keys import current_key
from holdfast.config.schema import ConfigField, fields, tables
from holdfast.config.templates import PROJECT_CONFIG_TEXT, PROJECT_POLICY_TEXT, config_text, policy_draft

__all__ = [
    "PROJECT_CONFIG",
    "PROJECT_CONFIG_TEXT",
    "PROJECT_POLICY_TEXT",
    "ConfigField",
    "Configured",
    "ProjectSettings",
    "Setting",
    "check_config",
    "config_text",
    "current_key",
    "fields",
    "load_config",
    "policy_draft",
    "project_budget",
    "read_config",
    "tables",
    "with_value",
    "written_key",
]
