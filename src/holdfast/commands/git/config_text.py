"""The text of a git configuration file (git-config(1), "Syntax"), parsed into entries and written again."""

import re
from collections.abc import Iterable

from holdfast.core import Value

_HEADER = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|[#;][^\n]*)+")
_VALUE_PIECE = re.compile(
    r'"(?P<quoted>(?:[^"\\\n]|\\[\s\S])*)"|\\(?P<escaped>[\s\S])|(?P<comment>[#;][^\n]*)|(?P<plain>[^"\\#;\n]+)'
)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\", "\n": "", "\r": ""}


class ConfigEntry(Value):
    """One variable. A variable without a value means true."""

    section: str
    """In lower case."""
    subsection: str | None
    name: str
    """In lower case."""
    value: str | None


def parse_config(text: str) -> list[ConfigEntry]:
    """The entries in their order. A line that is not valid is left out with the rest of its section."""
    entries: list[ConfigEntry] = []
    section, subsection = "", None
    place = 0
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    while place < len(text):
        if found := _BLANK.match(text, place):
            place = found.end()
        elif found := _HEADER.match(text, place):
            section, subsection = _section(found[1], found[2])
            place = found.end()
        elif section and (found := _NAME.match(text, place)):
            value, place = _value(text, found.end()) if found[2] else (None, found.end())
            entries.append(
                ConfigEntry(section=section, subsection=subsection, name=found[1].lower(), value=value)
            )
        else:
            line_end = text.find("\n", place)
            place = len(text) if line_end < 0 else line_end
            section, subsection = "", None
    return entries


def render_config(entries: Iterable[ConfigEntry]) -> str:
    """A configuration file with these entries, without comments."""
    lines: list[str] = []
    current: tuple[str, str | None] | None = None
    for entry in entries:
        if (entry.section, entry.subsection) != current:
            current = (entry.section, entry.subsection)
            lines.append(_render_header(entry))
        lines.append(f"\t{entry.name}" + ("" if entry.value is None else f" = {_quote(entry.value)}"))
    return "".join(f"{line}\n" for line in lines)


def _section(name: str, quoted: str | None) -> tuple[str, str | None]:
    if quoted is not None:
        return name.lower(), re.sub(r"\\(.)", r"\1", quoted)
    section, dot, rest = name.lower().partition(".")  # the older form `[section.subsection]`
    return section, rest if dot else None


def _value(text: str, place: int) -> tuple[str, int]:
    """The value that starts here, and where it ends. Blanks around it that are not quoted are removed."""
    pieces: list[str] = []
    kept = 0
    while found := _VALUE_PIECE.match(text, place):
        place = found.end()
        if found["comment"] is not None:
            continue
        if found["plain"] is not None:
            pieces.append(found["plain"] if kept else found["plain"].lstrip(" \t"))
            if bare := pieces[-1].rstrip(" \t\r"):
                kept = sum(map(len, pieces[:-1])) + len(bare)
        else:
            escaped = found["escaped"]
            raw = found["quoted"] if escaped is None else f"\\{escaped}"
            pieces.append(re.sub(r"\\([\s\S])", lambda each: _ESCAPES.get(each[1], each[1]), raw))
            if pieces[-1]:
                kept = sum(map(len, pieces))
    return "".join(pieces)[:kept], place


def _render_header(entry: ConfigEntry) -> str:
    if entry.subsection is None:
        return f"[{entry.section}]"
    quoted = entry.subsection.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{entry.section} "{quoted}"]'


def _quote(value: str) -> str:
    escaped = (
        value.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\t", "\\t")
        .replace("\b", "\\b")
    )
    return f'"{escaped}"'
