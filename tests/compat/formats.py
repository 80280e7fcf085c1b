"""What today's code reads and writes, by the names that are on disk or on a wire. No name of a class is among them.

python -m tests.compat.formats      writes data/formats.json; it ran once, with the code of version 0.1
"""

import io
import json
import re
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Union

import msgspec.inspect as inspect

import holdfast
from holdfast import agent, core, guests, mcp, models, policy, session, store, teams, world  # noqa: F401
from holdfast.cli import exit_codes
from holdfast.cli.views.team_tables import LogLine
from holdfast.config import current_key
from holdfast.config.load import PROJECT_CONFIG, ProjectSettings
from holdfast.core.errors import HoldfastError
from holdfast.core.events import FORMAT, event_types
from holdfast.gate import approval_files, audit, control_requests, stored_tree_budget
from holdfast.guests import signed_snapshot
from holdfast.guests.lisp import engine as lisp
from holdfast.guests.lisp.vm import compiler, image, snapshot
from holdfast.guests.python import state as python_state
from holdfast.mcp.config import files as mcp_files
from holdfast.mcp.config import sandbox, servers
from holdfast.mcp.proxy import approvals
from holdfast.mcp.trust import argument_roles, pins
from holdfast.models import translate
from holdfast.policy import load, parser, tool_roles
from holdfast.session.branches import rewind_fork
from holdfast.store import contract, home, summary
from holdfast.store.archive import format as archive_format
from holdfast.store.sqlite import database
from holdfast.world.restore_points import manifest
from holdfast.world.staging import commit

DATA = Path(__file__).parent / "data" / "formats.json"

STRUCTS: dict[str, Any] = {
    "event": Union[event_types()],  # noqa: UP007
    "config.toml": session.Settings,
    ".holdfast/config.toml": ProjectSettings,
    "grants.json": tuple[core.Grant, ...],
    "purse.json": stored_tree_budget._OldFile,
    "inbox": control_requests.AnyControlRequest,
    "escalations/request": approval_files._Request,
    "escalations/response": approval_files._Answer,
    "escalations/request of another program": approval_files.ExternalRequest,
    "audit.jsonl": audit.AuditEntry,
    "commit.undo": commit.UndoHead,
    "restore point": manifest.Manifest,
    "session.tally": summary.SummaryState,
    "archive manifest.json": contract.ArchiveManifest,
    "archive events.jsonl": archive_format._EventLine,
    "python state": python_state.PythonState,
    "python parked run": python_state.ParkedRun,
    "model wire": translate.ProviderPayload,
    "script of a model": list[str | models.Reply],
    "mcp-pins.json": pins._Document,
    "mcp-servers.json": servers._Entry,
    "mcp-servers.json sandbox": sandbox.Sandbox,
    "mcp-clients.json": mcp_files._Clients,
    "mcp ticket": approvals.Ticket,
    "tool-annotations.json": argument_roles._Document,
    "tool-annotations.json argument": argument_roles._ArgumentEntry,
    "teams.yaml": teams.Roster,
    "teams usage": teams.TeamsStats,
    "teams log": list[LogLine],
    "verify": list[contract.Inspection],
    "rewind": rewind_fork.RewindPlan,
    "audit --stats": audit.AuditStats,
}
"""Everything that is read back, or that a program reads from us."""

ID = "session-id"


@cache
def structs() -> dict[str, list[str]]:
    """Every field of every struct as a path with the kinds of value it may have."""
    found = {name: set(_paths(inspect.type_info(kind), "")) for name, kind in STRUCTS.items()}
    found["config.toml"] |= set(_old_config_paths(found["config.toml"]))
    return {name: sorted(paths) for name, paths in found.items()}


@cache
def required() -> dict[str, list[str]]:
    """The fields that data without them cannot be read for."""
    return {name: sorted(set(_required(inspect.type_info(kind), ""))) for name, kind in STRUCTS.items()}


@cache
def names() -> dict[str, list[str]]:
    """Every other name."""
    return {
        "error codes": sorted(set(_codes(HoldfastError))),
        "files": sorted(set(_files())),
        "archive files": sorted(set(_archive_files())),
        "tables": sorted(set(_columns())),
        "operations": sorted(set(_operations())),
        "policies": sorted(set(_policies())),
        "policy fields": sorted([*parser.POLICY_FIELDS, *(f"rule.{name}" for name in parser.RULE_FIELDS)]),
        "principals": sorted([core.PERSON, core.AGENT, core.EXTERNAL]),
        "variables": sorted(set(_variables())),
        "lisp image": sorted(
            f"{image.image_name(kind)}.{field}" for kind, fields in image._FIELDS.items() for field in fields
        ),
        "lisp machine": sorted([*snapshot._REGISTERS, *snapshot._COUNTS]),
    }


@cache
def constants() -> dict[str, object]:
    """What must not change at all: data that says another is refused."""
    return {
        "event format": FORMAT,
        "database application": database.APPLICATION_ID,
        "database version": database.VERSION,
        "seal": signed_snapshot._MAGIC_WITHOUT_ID.decode(),
        "seal with the id of its key": signed_snapshot._MAGIC.decode(),
        "lisp image format": image.FORMAT,
        "lisp machine version": compiler.VERSION,
        "lisp engine version": lisp.VERSION,
        "pins format": pins.FORMAT,
        "wire format": translate.WIRE_FORMAT,
        "exit codes": sorted(exit_codes.MEANINGS),
        "order of lisp image fields": {
            image.image_name(kind): list(each) for kind, each in image._FIELDS.items()
        },
    }


def _paths(kind: inspect.Type, above: str) -> Iterator[str]:
    match kind:
        case inspect.StructType():
            here = above if kind.tag is None else f"{above}({kind.tag_field}={kind.tag})"
            if kind.tag is not None:
                yield here
            for field in kind.fields:
                yield from _paths(field.type, f"{here}.{field.encode_name}")
        case inspect.UnionType():
            for each in kind.types:
                yield from _paths(each, above)
        case inspect.LiteralType():
            for value in kind.values:
                yield f"{above} = {value}"
        case inspect.DictType():
            yield from _paths(kind.value_type, f"{above}{{}}")
        case inspect.VarTupleType() | inspect.ListType():
            yield from _paths(kind.item_type, f"{above}[]")
        case _:
            yield f"{above}: {type(kind).__name__.removesuffix('Type').lower()}"


def _old_config_paths(current: set[str]) -> Iterator[str]:
    """The pinned paths of config.toml whose key has a new name, if that key takes the same kinds of value."""
    pinned: list[str] = json.loads(DATA.read_text())["structs"]["config.toml"]
    for path in pinned:
        key, kind = re.fullmatch(r"\.([\w.]+)(.*)", path).groups()  # type: ignore[union-attr]  # else the test fails
        if f".{current_key(key)}{kind}" in current:
            yield path


def _required(kind: inspect.Type, above: str) -> Iterator[str]:
    match kind:
        case inspect.StructType():
            here = above if kind.tag is None else f"{above}({kind.tag_field}={kind.tag})"
            for field in kind.fields:
                if field.required:
                    yield f"{here}.{field.encode_name}"
                yield from _required(field.type, f"{here}.{field.encode_name}")
        case inspect.UnionType():
            for each in kind.types:
                yield from _required(each, above)
        case inspect.DictType():
            yield from _required(kind.value_type, f"{above}{{}}")
        case inspect.VarTupleType() | inspect.ListType():
            yield from _required(kind.item_type, f"{above}[]")
        case _:
            pass


def _codes(kind: type[HoldfastError]) -> Iterator[str]:
    yield kind.code
    for each in kind.__subclasses__():
        yield from _codes(each)


def _files() -> Iterator[str]:
    root = Path("/").resolve() / "no-such-home"
    place = home.Home(root)
    for name, member in vars(home.Home).items():
        if isinstance(member, property):
            yield str(getattr(place, name).relative_to(root))
        elif name in (
            "session_folder",
            "workspace",
            "escalations",
            "control_requests",
            "tree_budget",
            "stat_cache",
            "audit",
        ):
            yield str(getattr(place, name)(ID).relative_to(root))
    listed = mcp_files.McpFiles(root)
    for path in (
        listed.servers_file,
        listed.annotations_file,
        listed._clients_file,
        root / mcp_files.PINS_FILE,
    ):
        yield path.name
    yield commit.UndoJournal(Path())._file.name
    yield str(PROJECT_CONFIG)
    yield str(load.PROJECT_POLICY)


def _archive_files() -> Iterator[str]:
    described = contract.ArchiveManifest(session=core.SessionId(ID), events=0, last_hash="", exported_ms=0)
    file = io.BytesIO()
    archive_format.pack(file, described, (), [("digest", b"content")])
    with zipfile.ZipFile(file) as archive:
        yield from archive.namelist()


def _columns() -> Iterator[str]:
    schema = resources.files(database.__package__) / "sql" / "schema.sql"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema.read_text())
        for kind, name in connection.execute("SELECT type, name FROM sqlite_master").fetchall():
            yield f"{kind} {name}"
            if kind == "table":
                for _, column, type, *_ in connection.execute(f"PRAGMA table_info({name})").fetchall():
                    yield f"{kind} {name}.{column} {type}"


def _operations() -> Iterator[str]:
    for name, tool in tool_roles.KNOWN_TOOLS.items():
        yield name
        for argument, roles in (tool.roles or {}).items():
            yield f"{name} {argument}: {', '.join(roles.default)}"


def _policies() -> Iterator[str]:
    for name in policy.named_policies():
        yield name
        loaded = policy.load_policy(name)
        assert isinstance(loaded, policy.RulePolicy)
        for rule in loaded.document.rules:
            yield f"{name} {rule.name}: {rule.verdict}"


def _variables() -> Iterator[str]:
    """Variables of the environment, wherever the source names one."""
    [root] = holdfast.__path__
    for path in Path(root).rglob("*.py"):
        yield from set(re.findall(r"\bHOLDFAST_[A-Z]+(?:_[A-Z]+)*\b", path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    found = {"structs": structs(), "required": required(), "names": names(), "constants": constants()}
    DATA.write_text(json.dumps(found, indent=1) + "\n")
