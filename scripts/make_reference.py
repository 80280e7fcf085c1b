"""Generate docs/reference from the code: commands, configuration, events, errors, exit codes and the Python API; and the parsed
form of the default policies.

python scripts/make_reference.py            write the files
python scripts/make_reference.py --check    report stale files without writing
"""

import ast
import dataclasses
import inspect
import os
import re
import sys
import textwrap
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

import holdfast
from holdfast.cli import exit_codes
from holdfast.cli.command_list import GROUPS
from holdfast.cli.error_help import load_error_help
from holdfast.cli.help_pages import HelpParser, load_command, subcommands
from holdfast.config import ProjectSettings, fields, tables
from holdfast.config.renamed_keys import RENAMED_KEYS, RENAMED_TABLES
from holdfast.core import Value, events
from holdfast.web.openapi import openapi

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "reference"
_MADE = "<!-- Made by scripts/make_reference.py from the code. Do not edit. -->\n"


def openapi_page() -> str:
    """The API of the web server."""
    return msgspec.json.format(msgspec.json.encode(openapi()), indent=1).decode() + "\n"


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


def python() -> str:
    """Every public name of the package, from its docstring and signature."""
    parts = [_MADE, "# Python\n"]
    parts.append(
        "What `import holdfast` offers. [Use Holdfast in a program](../guides/library.md) shows how it fits together.\n"
    )
    named = {name: getattr(holdfast, name) for name in holdfast.__all__ if not name.startswith("__")}
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Types": [], "Modules": []}
    for name, item in named.items():
        if isinstance(item, types.ModuleType):
            groups["Modules"].append(_module_section(name, item))
        elif isinstance(item, type) and name not in _PYTHON_TYPES:
            groups["Classes"].append(_class_section(name, item))
        elif inspect.isroutine(item):
            groups["Functions"].append(_routine_section(f"holdfast.{name}", item, "###"))
        else:
            groups["Types"].append(
                f"### {name}\n\n`{_shorten(_annotation(item))}`\n\n{_PYTHON_TYPES[name]}\n"
            )
    for heading, sections in groups.items():
        parts += [f"## {heading}\n", *sections]
    return "\n".join(parts).rstrip() + "\n"


def public_members(kind: type) -> dict[str, object]:
    """The documented methods and properties of a class, in the order of its source."""
    return {
        name: member
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("holdfast.")
        for name, member in vars(base).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property | classmethod | staticmethod))
    }


@cache
def _contract_members() -> frozenset[str]:
    """Members that a public protocol documents, so that an implementation need not repeat it."""
    items = (getattr(holdfast, name) for name in holdfast.__all__)
    contracts = (item for item in items if isinstance(item, type) and getattr(item, "_is_protocol", False))
    return frozenset(member for contract in contracts for member in public_members(contract))


def _class_section(name: str, kind: type) -> str:
    parts = [f"### {name}\n", f"{_doc(kind)}\n"]
    shown = _attributes(kind)
    if shown:
        parts.append("| field | type | |\n|---|---|---|")
        parts += [
            f"| `{field}` | `{_cell(_shorten(text))}` | {_cell(about)} |"
            for field, (text, about) in shown.items()
        ]
        parts.append("")
    for member, item in public_members(kind).items():
        if not inspect.getdoc(item) and member in _contract_members():
            continue
        if isinstance(item, property):
            parts.append(f"#### {name}.{member}\n\n{_doc(item)}\n")
        else:
            parts.append(_routine_section(f"{name}.{member}", getattr(kind, member), "####"))
    return "\n".join(parts)


def _routine_section(name: str, routine: object, level: str) -> str:
    inner = inspect.unwrap(routine)  # type: ignore[arg-type]
    words = (
        "async with "
        if hasattr(routine, "__wrapped__")
        else "await "
        if inspect.iscoroutinefunction(inner)
        else ""
    )
    return f"{level} {name}\n\n```python\n{words}{name}{_signature(inner)}\n```\n\n{_doc(routine)}\n"


def _module_section(name: str, module: types.ModuleType) -> str:
    names = getattr(module, "__all__", None) or sorted(
        each
        for each, item in vars(module).items()
        if isinstance(item, type) and item.__module__.startswith(module.__name__)
    )
    return f"### holdfast.{name}\n\n{_doc(module).splitlines()[0]}\n\n{', '.join(f'`{each}`' for each in names)}\n"


def _signature(routine: object) -> str:
    found = inspect.signature(routine)  # type: ignore[arg-type]
    shown = [each for each in found.parameters.values() if each.name not in ("self", "cls")]
    lines, has_star = [], False
    for each in shown:
        if each.kind is each.KEYWORD_ONLY and not has_star:
            has_star = True
            lines.append("*")
        has_star = has_star or each.kind is each.VAR_POSITIONAL
        prefix = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f" = {_default(each.default)}"
        lines.append(f"{prefix}{each.name}: {_shorten(_annotation(each.annotation))}{default}")
    result = "" if found.return_annotation is found.empty else f" -> {_annotation(found.return_annotation)}"
    line = f"({', '.join(lines)}){result}"
    return line if len(line) < 80 else "(\n" + "".join(f"    {each},\n" for each in lines) + f"){result}"


def _annotation(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    text = re.sub(r"\b(?:typing|collections\.abc|pathlib|decimal|holdfast)\.(?:\w+\.)*(?=\w)", "", text)
    return text.replace("NoneType", "None").strip("'\"")


def _default(value: object) -> str:
    return getattr(value, "__name__", repr(value))


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:96]} ..."


def _doc(item: object) -> str:
    text = inspect.getdoc(item) or ""
    if not text:
        raise SystemExit(f"{item!r} is public and has no docstring")
    return text


def _attributes(kind: type) -> dict[str, tuple[str, str]]:
    """The fields that a class declares, with their docstrings."""
    if not dataclasses.is_dataclass(kind) and not issubclass(kind, msgspec.Struct | dict):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("holdfast.") and base is not Value:
            try:
                [body] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            except (OSError, TypeError):
                continue
            statements = body.body if isinstance(body, ast.ClassDef) else []
            for field, after in zip(statements, [*statements[1:], None], strict=True):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    about = ""
                    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                        about = " ".join(str(after.value.value).split())
                    found[field.target.id] = ast.unparse(field.annotation), about
    return {name: value for name, value in found.items() if not name.startswith("_")}


_PYTHON_TYPES = {
    "Answer": "What the gate answers to a call of a guest.",
    "Approver": "Asks about one escalation. None means no answer; another transport may still answer.",
    "Json": "Data that fits in JSON.",
    "OnCall": "How a guest calls the host: operation and arguments in, answer out.",
    "Outcome": "How a turn ended.",
    "Sandbox": "Where code runs.",
    "SessionId": "The id of a session, which is its only key.",
}


_VARIABLES = {
    "HOLDFAST_HOME": "the data directory, instead of `~/.holdfast`",
    "HOLDFAST_MODEL": "overrides `model`",
    "HOLDFAST_POLICY": "overrides `policy`",
    "ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY": "API keys; the first one set chooses the model if none is named",
    "NO_COLOR": "no colour; the editor, the status line and the live output stay (`--plain` removes them)",
    "HOLDFAST_PLAIN": "plain lines for a screen reader, without redraws, colour and wrapping, in every command",
    "TERM=dumb": "plain mode",
}

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "config.md": config,
    "events.md": event_kinds,
    "errors.md": errors,
    "exit-codes.md": exit_code_page,
    "python.md": python,
    "openapi.json": openapi_page,
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
    """Write the files, or check them."""
    files = {FOLDER / name: make for name, make in PAGES.items()}
    stale = []
    for path, make in files.items():
        text = make()
        if "--check" not in words:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
    for name in stale:
        print(f"{name} is stale: python scripts/make_reference.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
