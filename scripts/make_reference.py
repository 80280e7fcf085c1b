"""Generate docs/reference from the code: commands, configuration, events, errors and exit codes.

python scripts/make_reference.py            write the pages
python scripts/make_reference.py --check    report stale pages without writing
"""

import os
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.command_list import GROUPS
from holdfast.cli.error_help import load_error_help
from holdfast.cli.help_pages import HelpParser, load_command, subcommands
from holdfast.config import ProjectSettings, fields, tables
from holdfast.config.renamed_keys import RENAMED_KEYS, RENAMED_TABLES
from holdfast.core import events

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
_MADE = "<!-- Made by scripts/make_reference.py from the code. Do not edit. -->\n"


def commands() -> str:
    """Every command with its help, as shown on a terminal of 80 columns."""
    os.environ["COLUMNS"] = "80"
    parts = [_MADE, "# Commands\n"]
    parts.append("What `holdfast --help` and `holdfast COMMAND --help` show.\n")
    parts += ["## holdfast\n", _shown(load_command("session").parser)]
    for heading, group in GROUPS.items():
        parts.append(f"## {heading[0].upper()}{heading[1:]}\n")
        for name, what in group.items():
            parser = load_command(name).parser
            parts += [f"### holdfast {name}\n", f"{what[0].upper()}{what[1:]}.\n", _shown(parser)]
            for below in subcommands(parser).values():
                parts.append(_shown(below))
    return "\n".join(parts)


def config() -> str:
    """Every field of config.toml."""
    parts = [_MADE, "# Configuration\n"]
    parts.append(
        "`config.toml` in Holdfast's data directory (`$HOLDFAST_HOME`, else `~/.holdfast`). `holdfast init` writes one with\n"
        "every field in a comment, `holdfast config` shows the effective values and where each comes from, and\n"
        "`holdfast config set KEY VALUE` changes one. An error names file, line and column.\n"
    )
    parts.append("| variable | effect |\n|---|---|")
    parts += [f"| `{name}` | {what} |" for name, what in _VARIABLES.items()]
    parts.append("")
    for table, about in {"": "At the top of the file.", **tables()}.items():
        parts += [
            f"## {f'[{table}]' if table else 'Top'}\n",
            f"{about}\n",
            "| key | kind | default | purpose |",
        ]
        parts.append("|---|---|---|---|")
        for field in fields():
            if field.key.rpartition(".")[0] == table:
                default = "" if field.default in (None, "") else f"`{_plain(field.default)}`"
                parts.append(f"| `{field.key}` | {field.kind} | {default} | {_cell(field.description)} |")
        parts.append("")
    parts.append("## Old names\n")
    parts.append("Version 0.1 had other names for these. They are still read, with a note on stderr.\n")
    parts.append("| old | current |\n|---|---|")
    parts += [f"| `[{old}]` | `[{new}]` |" for old, new in RENAMED_TABLES.items()]
    parts += [f"| `{old}` | `{new}` |" for old, new in RENAMED_KEYS.items()]
    parts.append("")
    parts.append("## In a project\n")
    parts.append(
        "`.holdfast/config.toml` and `.holdfast/policy.yaml` in the `-w` folder come with the project, so they can only\n"
        "restrict: the stricter limit applies, and both policies must allow a call. `holdfast init --project` writes them.\n"
    )
    parts.append("| key | kind |\n|---|---|")
    parts += [f"| `{field.key}` | {field.kind} |" for field in fields(ProjectSettings)]
    return "\n".join(parts) + "\n"


def event_kinds() -> str:
    """Every event that a journal may hold."""
    parts = [_MADE, "# Events\n"]
    parts.append(
        "What a journal holds, and what `holdfast show --events --json` and an export contain: one JSON object per event, with\n"
        "its kind in `event`. An event is written once and never changed; new fields have defaults.\n"
    )
    for kind in events.event_types():
        tag = kind.__struct_config__.tag
        parts += [f"## {tag}\n", f"{' '.join((kind.__doc__ or '').split())}\n"]
        shape = msgspec.structs.fields(kind)
        if shape:
            parts.append("| field | type | |\n|---|---|---|")
            for field in shape:
                need = "" if field.required else "optional"
                parts.append(f"| `{field.encode_name}` | `{_type(field.type)}` | {need} |")
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def errors() -> str:
    """Every error code."""
    parts = [_MADE, "# Errors\n"]
    parts.append(
        "The code is in parentheses at the end of an error, and in `code` of an outcome. `holdfast explain CODE` shows the\n"
        "same text.\n"
    )
    for code, explanation in load_error_help().items():
        parts += [f"## {code}\n", f"{explanation.what} {explanation.why}\n", f"**Do:** {explanation.todo}\n"]
    return "\n".join(parts).rstrip() + "\n"


def exit_code_page() -> str:
    """Every exit code."""
    rows = [f"| {code} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items()]
    head = [_MADE, "# Exit codes\n", "The same for every command.\n", "| code | meaning |", "|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


_VARIABLES = {
    "HOLDFAST_HOME": "the data directory, instead of `~/.holdfast`",
    "HOLDFAST_MODEL": "overrides `model`",
    "HOLDFAST_POLICY": "overrides `policy`",
    "ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY": "API keys; the first one set chooses the model if none is named",
    "NO_COLOR": "plain mode: no colour, and linear text without redraws; `--no-plain` keeps the editor, without colour",
    "TERM=dumb": "plain mode",
}

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "config.md": config,
    "events.md": event_kinds,
    "errors.md": errors,
    "exit-codes.md": exit_code_page,
}


def _shown(parser: HelpParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```\n"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _type(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    text = re.sub(r"\b(?:typing|holdfast)\.(?:\w+\.)*", "", text)
    return textwrap.shorten(text.replace("|", "or"), 90, placeholder=" ...")


def main(words: list[str]) -> int:
    """Write the pages, or check them."""
    stale = []
    for name, make in PAGES.items():
        path, text = FOLDER / name, make()
        if "--check" not in words:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for name in stale:
        print(f"docs/reference/{name} is stale: python scripts/make_reference.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
