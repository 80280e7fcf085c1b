"""The files that `holdfast init` writes: a configuration and a policy to start from, with explanations in comments."""

import textwrap
from decimal import Decimal

import msgspec

from holdfast.config.schema import ConfigField, fields, tables

_WIDTH = 100
_EXAMPLES: dict[str, object] = {
    "model": "anthropic:claude-sonnet-5-5",
    "max_history_messages": 200,
    "workspace_bytes": 1_000_000_000,
    "workspace_files": 20_000,
    "model_requests.base_url": "https://gateway.example.com/v1",
    "model_requests.key_variable": "COMPANY_KEY",
    "model_requests.max_tokens": 8000,
    "model_requests.context_tokens": 128_000,
    "model_requests.temperature": 0.2,
    "model_requests.thinking": "low",
    "tokens": 1_000_000,
    "cost_usd": 5,
    "wall_seconds": 3600,
    "steps": 200,
    "calls": 5000,
    "iterations": 1000,
    "bytes_written": 50_000_000,
}
"""Example values for fields without a default, by dotted key, or by name in a table of limits."""

PROJECT_CONFIG_TEXT = """\
# Holdfast: limits for sessions in this project. This file comes with the project, so it can only lower the limits of
# each person's own configuration; the lower one applies.

[budget]  # of a session
# usd = 2
# tokens = 500000
"""

PROJECT_POLICY_TEXT = """\
# Holdfast: rules of this project for every agent, on top of each person's own policy. Both policies judge each call and
# the stricter decision applies, so nothing here can permit more. Try it: holdfast policy test .holdfast/policy.yaml
policy: this-project
description: Keeps agents away from secrets; everything else is left to the person's own policy.

rules:
  - name: secrets
    deny: "*"
    paths: [".env", ".env.*", secrets, "**/*.pem"]
    because: keys and passwords are not for agents
    instead: ask the person for the value you need
    examples:
      matches:
        - world.read: {path: .env}
        - world.read: {path: secrets/api-key}
      misses:
        - world.read: {path: environment.md}

  # - name: ask-before-lock-files          # remove the # to be asked before these files change
  #   escalate: "world.*"
  #   roles: [write-path, delete-path]
  #   paths: ["**/*.lock"]
  #   because: dependencies should only change on purpose

  - name: the-rest
    allow: "*"
    because: everything else is left to the person's own policy
    examples:
      matches:
        - world.read: {path: src/a.py}
      misses:
        - world.read: {path: .env}
"""


def config_text(policy: str) -> str:
    """A config.toml that describes every field in comments and sets only the policy."""
    parts = [
        "# Holdfast: your configuration. A line such as `# name = value` shows the default, or an example;",
        "# remove the # to set it. `holdfast config` shows the current values and where they come from.",
    ]
    table = ""
    for field in fields():
        table_of_field, _, name = field.key.rpartition(".")
        if table_of_field != table:
            table = table_of_field
            parts += ["", *_comment(tables()[table]), f"[{table}]"]
        if field.description:
            parts += ["", *_comment(field.description)]
        is_set = field.key == "policy"
        parts.append(f"{name} = {_as_toml(policy)}" if is_set else f"# {name} = {_example(field)}")
    return "\n".join(parts) + "\n"


def policy_draft(text: str, name: str) -> str:
    """A copy of a shipped policy under another name, for a person to edit."""
    lines = text.splitlines(keepends=True)
    head = (
        "# Holdfast: your own policy, copied from a shipped one. The first rule that matches a call decides, a deny always\n"
        f"# wins, and a call that matches no rule is denied. Try it: holdfast policy test {name}, holdfast policy lint {name}\n"
    )
    return head + f"policy: {name}\n" + "".join(lines[1:])


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _example(field: ConfigField) -> str:
    is_unset = field.default is None or field.default == ""
    name = field.key.rpartition(".")[2]
    example = _EXAMPLES.get(field.key, _EXAMPLES.get(name, 1000 if "number" in field.kind else "..."))
    return _as_toml(example if is_unset else field.default)


def _as_toml(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else msgspec.json.encode(value).decode()
