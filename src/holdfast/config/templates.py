"""What `holdfast init` writes: a configuration and a policy to start from, with everything said in comments."""

import textwrap
from decimal import Decimal

import msgspec

from holdfast.config.schema import Field, fields, tables

_WIDTH = 100
_EXAMPLES: dict[str, object] = {
    "model": "anthropic:claude-sonnet-5-5",
    "max_tokens": 8000,
    "max_history_messages": 200,
    "workspace_bytes": 1_000_000_000,
    "workspace_files": 20_000,
    "asking.base_url": "https://gateway.example.com/v1",
    "asking.key_variable": "COMPANY_KEY",
    "asking.max_tokens": 8000,
    "asking.context_tokens": 128_000,
    "asking.temperature": 0.2,
    "asking.thinking": "low",
    "tokens": 1_000_000,
    "cost_usd": 5,
    "wall_seconds": 3600,
    "steps": 200,
    "calls": 5000,
    "iterations": 1000,
    "bytes_written": 50_000_000,
}
"""Where there is no default, a value to show how it is written: by key, else by the name in a table of limits."""

_SECOND_MODEL = "asking.model"
"""`model` at the top goes before it."""

PROJECT_CONFIG_TEXT = """\
# Holdfast: what this project says for itself. It comes with the files, so it can only narrow what each person's own
# configuration allows; the stricter of both holds.

[budget]  # of a session
# usd = 2
# tokens = 500000
"""

PROJECT_POLICY_TEXT = """\
# Holdfast: what this project asks of every agent, on top of each person's own policy. Both judge and the stricter counts,
# so nothing here can widen what a person allows. Try it: holdfast policy test .holdfast/policy.yaml
policy: this-project
description: Keeps secrets and what is generated out of an agent's hands; the rest is for the person's own policy.

rules:
  - name: secrets
    deny: "*"
    paths: [".env", ".env.*", secrets, "**/*.pem"]
    because: keys and passwords are nobody's business
    instead: ask the person for the value you need
    examples:
      matches:
        - world.read: {path: .env}
        - world.read: {path: secrets/api-key}
      misses:
        - world.read: {path: environment.md}

  # - name: ask-before-lock-files          # take the # away to be asked before these change
  #   escalate: "world.*"
  #   roles: [write-path, delete-path]
  #   paths: ["**/*.lock"]
  #   because: dependencies are changed on purpose

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
    """A config.toml that says everything in comments and sets only the policy."""
    parts = [
        "# Holdfast: your configuration. A line with # before a value shows the default, or how a value is written;",
        "# take the # away to set it. `holdfast config` shows what is in force and where it comes from.",
    ]
    table = ""
    for field in fields():
        if field.key == _SECOND_MODEL:
            continue
        here, _, name = field.key.rpartition(".")
        if here != table:
            table = here
            parts += ["", *_comment(tables()[table]), f"[{table}]"]
        if field.what:
            parts += ["", *_comment(field.what)]
        is_set = field.key == "policy"
        parts.append(f"{name} = {_written(policy)}" if is_set else f"# {name} = {_shown(field)}")
    return "\n".join(parts) + "\n"


def policy_draft(text: str, name: str) -> str:
    """A named policy under another name, to be changed."""
    lines = text.splitlines(keepends=True)
    head = (
        "# Holdfast: your own policy, a copy of the one it comes with. The first rule that fits a call decides, a deny always\n"
        f"# wins, and what fits no rule is denied. Try it: holdfast policy test {name}, holdfast policy lint {name}\n"
    )
    return head + f"policy: {name}\n" + "".join(lines[1:])


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _shown(field: Field) -> str:
    is_unset = field.default is None or field.default == ""
    name = field.key.rpartition(".")[2]
    example = _EXAMPLES.get(field.key, _EXAMPLES.get(name, 1000 if "number" in field.kind else "..."))
    return _written(example if is_unset else field.default)


def _written(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else msgspec.json.encode(value).decode()
