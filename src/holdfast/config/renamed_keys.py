"""Keys of config.toml that version 0.1 had under another name. The old names are still read."""

from collections.abc import Mapping

RENAMED_TABLES: Mapping[str, str] = {"asking": "model_requests"}
RENAMED_KEYS: Mapping[str, str] = {
    "mode": "acts_with",
    "max_tokens": "model_requests.max_tokens",
    "asking.model": "model",
    "asking.attempts": "model_requests.max_attempts",
    "asking.total_seconds": "model_requests.timeout_seconds",
    "notify": "notify.terminal",
    "notify_command": "notify.command",
}
"""Old dotted key to the current one. A key of a renamed table that is not listed keeps its own name."""


def current_key(key: str) -> str:
    """The current name of a dotted key."""
    table, _, name = key.rpartition(".")
    return RENAMED_KEYS.get(key) or (f"{RENAMED_TABLES[table]}.{name}" if table in RENAMED_TABLES else key)


def with_current_keys(table: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """The same values under their current keys, and the old key of each value that had one.

    If the same value is set under several names, the current name wins.
    """
    current = {name: dict(value) if isinstance(value, dict) else value for name, value in table.items()}
    old_keys: dict[str, str] = {}
    # In version 0.1 the top-level `max_tokens` took precedence over `asking.max_tokens`.
    for old in sorted(old_keys_in(table), key=lambda key: "." in key):
        value = _container(current, old).pop(old.rpartition(".")[2])
        key = current_key(old)
        if _container(current, key).setdefault(key.rpartition(".")[2], value) is value:
            old_keys.setdefault(key, old)
    return {name: value for name, value in current.items() if name not in RENAMED_TABLES or value}, old_keys


def old_keys_in(table: Mapping[str, object]) -> list[str]:
    """The old keys that a table contains."""
    return [key for key in dotted_keys(table) if current_key(key) != key]


def dotted_keys(table: Mapping[str, object], prefix: str = "") -> list[str]:
    """The dotted key of every value in a table and in the tables below it."""
    found = []
    for name, value in table.items():
        if isinstance(value, dict):
            found += dotted_keys(value, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found


def _container(table: dict[str, object], key: str) -> dict[str, object]:
    """The table that a dotted key belongs to."""
    name = key.rpartition(".")[0]
    inner = table.setdefault(name, {}) if name else table
    return inner if isinstance(inner, dict) else {}
