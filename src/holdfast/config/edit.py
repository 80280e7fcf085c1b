"""Editing config.toml: set one value and keep the person's comments and layout. tomlkit loads on the first edit."""

import re
from collections.abc import MutableMapping, Sequence
from typing import Any

from holdfast.config.renamed_keys import current_key, old_keys_in
from holdfast.core.errors import InvalidInput

Scalar = str | int | float | bool
Setting = Scalar | Sequence[Scalar]


def with_value(text: str, key: str, value: Setting) -> str:
    """The text with a dotted key set to a value and old names of that key removed. Raises InvalidInput if that fails."""
    import tomllib

    import tomlkit

    value = value if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
    before = tomllib.loads(text)
    document = tomlkit.parse(text if text.endswith("\n") or not text else f"{text}\n")
    old_keys = [old for old in old_keys_in(before) if current_key(old) == key]
    for old in old_keys:
        _table(document, old).pop(old.rpartition(".")[2])
    table, _, name = key.rpartition(".")
    if table and table not in document:
        if text:
            document.add(tomlkit.nl())
        document.add(table, tomlkit.table().add(name, value))
    else:
        _set(_table(document, key), name, value)
    changed = tomlkit.dumps(document)
    _check_only_this_changed(before, changed, {**dict.fromkeys(old_keys), key: value})
    return changed


def _table(document: MutableMapping[str, Any], key: str) -> MutableMapping[str, Any]:
    name = key.rpartition(".")[0]
    inner = document[name] if name else document
    if not isinstance(inner, MutableMapping):
        raise InvalidInput(f"{key} cannot be set: {name} is not a table", hint="edit the file yourself")
    return inner


def _set(table: MutableMapping[str, Any], name: str, value: Setting) -> None:
    from tomlkit import TOMLDocument, item
    from tomlkit.items import SingleKey, Table

    if name in table or not isinstance(table, Table | TOMLDocument):
        table[name] = value
    else:
        body = table.value.body if isinstance(table, Table) else table.body
        body.insert(_position(body, name), (SingleKey(name), item(value)))


def _position(body: list[Any], name: str) -> int:
    """Below the comment that shows the key, else after the last value, else below the comment at the top."""
    from tomlkit.items import AbstractTable, Comment

    for index, (_, item) in enumerate(body):
        if isinstance(item, Comment) and re.match(rf"#\s*{re.escape(name)}\s*=", item.as_string().strip()):
            return index + 1
    values = [index for index, (key, item) in enumerate(body) if key and not isinstance(item, AbstractTable)]
    if values:
        return values[-1] + 1
    return next((index for index, (_, item) in enumerate(body) if not isinstance(item, Comment)), len(body))


def _check_only_this_changed(before: dict[str, Any], after: str, changes: dict[str, Setting | None]) -> None:
    """Compare all values, because a person may have written the file in a way that `with_value` does not expect."""
    import tomllib

    for key, value in changes.items():
        *tables, name = key.split(".")
        inner = before
        for table in tables:
            inner = inner.setdefault(table, {})
        if value is None:
            del inner[name]
        else:
            inner[name] = value
    try:
        is_expected = tomllib.loads(after) == before
    except tomllib.TOMLDecodeError:
        is_expected = False
    if not is_expected:
        raise InvalidInput(
            f"{', '.join(changes)} cannot be set without rewriting the file",
            hint="edit the file yourself; `holdfast config path` shows where it is",
        )
