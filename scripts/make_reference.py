"""Make docs/reference from the code: commands, configuration, events, errors and exit codes.

python scripts/make_reference.py            write the pages
python scripts/make_reference.py --check    say which are stale, and write nothing
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
from holdfast.cli.error_help import explanations
from holdfast.cli.help_pages import ManualParser, actions, load
from holdfast.config import ProjectSettings, fields, tables
from holdfast.core import events

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
_MADE = "<!-- Made by scripts/make_reference.py from the code. Do not edit. -->\n"


def commands() -> str:
    """Every command, with its help as it is shown at a terminal of 80 columns."""
    os.environ["COLUMNS"] = "80"
    parts = [_MADE, "# Commands\n"]
    parts.append("What `holdfast --help` and `holdfast COMMAND --help` show.\n")
    parts += ["## holdfast\n", _shown(load("session").parser)]
    for heading, group in GROUPS.items():
        parts.append(f"## {heading[0].upper()}{heading[1:]}\n")
        for name, what in group.items():
            parser = load(name).parser
            parts += [f"### holdfast {name}\n", f"{what[0].upper()}{what[1:]}.\n", _shown(parser)]
            for below in actions(parser).values():
                parts.append(_shown(below))
    return "\n".join(parts)


def config() -> str:
    """Every field of config.toml."""
    parts = [_MADE, "# Configuration\n"]
    parts.append(
        "`config.toml` in the home of Holdfast (`$HOLDFAST_HOME`, else `~/.holdfast`). `holdfast init` writes one with\n"
        "everything in comments, `holdfast config` shows what is in force and where each value comes from, and\n"
        "`holdfast config set KEY VALUE` changes one. A mistake is named with file, line and column.\n"
    )
    parts.append("| variable | what it does |\n|---|---|")
    parts += [f"| `{name}` | {what} |" for name, what in _VARIABLES.items()]
    parts.append("")
    for table, about in {"": "At the top of the file.", **tables()}.items():
        parts += [
            f"## {f'[{table}]' if table else 'Top'}\n",
            f"{about}\n",
            "| key | kind | default | what it is for |",
        ]
        parts.append("|---|---|---|---|")
        for field in fields():
            if field.key.rpartition(".")[0] == table and field.key != "asking.model":
                default = "" if field.default in (None, "") else f"`{_plain(field.default)}`"
                parts.append(f"| `{field.key}` | {field.kind} | {default} | {_cell(field.what)} |")
        parts.append("")
    parts.append("## In a project\n")
    parts.append(
        "`.holdfast/config.toml` and `.holdfast/policy.yaml` in the folder of `-w` come with the project, so they can only\n"
        "narrow: the stricter limit holds, and both policies judge. `holdfast init --project` writes them.\n"
    )
    parts.append("| key | kind |\n|---|---|")
    parts += [f"| `{field.key}` | {field.kind} |" for field in fields(ProjectSettings)]
    return "\n".join(parts) + "\n"


def event_kinds() -> str:
    """Every event that a journal may hold."""
    parts = [_MADE, "# Events\n"]
    parts.append(
        "What a journal holds, and what `holdfast show --events --json` and an export have: one JSON object an event, its\n"
        "kind in `event`. An event is written once and never changed; fields may be added with a default.\n"
    )
    for kind in events.event_types():
        tag = kind.__struct_config__.tag
        parts += [f"## {tag}\n", f"{' '.join((kind.__doc__ or '').split())}\n"]
        shape = msgspec.structs.fields(kind)
        if shape:
            parts.append("| field | type | |\n|---|---|---|")
            for field in shape:
                need = "" if field.required else "may be missing"
                parts.append(f"| `{field.encode_name}` | `{_type(field.type)}` | {need} |")
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def errors() -> str:
    """Every error code."""
    parts = [_MADE, "# Errors\n"]
    parts.append(
        "The code stands in brackets at the end of an error, and in `code` of an outcome. `holdfast explain CODE` shows the\n"
        "same words.\n"
    )
    for code, explanation in explanations().items():
        parts += [f"## {code}\n", f"{explanation.what} {explanation.why}\n", f"**Do:** {explanation.todo}\n"]
    return "\n".join(parts).rstrip() + "\n"


def exit_code_page() -> str:
    """Every exit code."""
    rows = [f"| {code} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items()]
    head = [_MADE, "# Exit codes\n", "The same for every command.\n", "| code | meaning |", "|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


_VARIABLES = {
    "HOLDFAST_HOME": "where everything lies, instead of `~/.holdfast`",
    "HOLDFAST_MODEL": "goes before `model`",
    "HOLDFAST_POLICY": "goes before `policy`",
    "ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY": "keys; the first that is there chooses a model where none is named",
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


def _shown(parser: ManualParser) -> str:
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
