"""Loads and edits a roster file. The parser is imported on use: YAML is slow to import, and most commands need no roster."""

from collections.abc import Callable
from pathlib import Path

from holdfast.core import JsonObject
from holdfast.core.errors import InvalidConfig
from holdfast.store import Home, read_settings
from holdfast.teams.config.roster import Roster


def load_roster(
    path: Path, *, home: Home | None = None, open_policy: Callable[[str], object] | None = None
) -> Roster:
    """Load a roster; with `open_policy`, check that every team's policy opens. Raises InvalidConfig with line and column.

    A project must not be, contain or lie in `home`, by default Holdfast's data directory.
    """
    try:
        text = read_settings(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidConfig(
            f"{path}: there is no such file", hint="create one with: holdfast teams init"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from None
    from holdfast.teams.config.parse import parse_roster

    return parse_roster(text, source=str(path), home=home, open_policy=open_policy)


def with_team(text: str, name: str, fields: JsonObject, *, source: str) -> str:
    """The text of a roster with a team added and nothing else changed. Raises InvalidInput, InvalidConfig."""
    from holdfast.teams.config.edit import with_team as edited

    return edited(text, name, fields, source=source)


def without_team(text: str, name: str, *, source: str) -> str:
    """The text of a roster with a team removed. Raises UnknownTeam, InvalidConfig."""
    from holdfast.teams.config.edit import without_team as edited

    return edited(text, name, source=source)
