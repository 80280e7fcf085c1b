"""Prepare, check and fill a store in PostgreSQL, which many machines can share.

holdfast store init URL                      create the schema and the queue
holdfast store init URL --blobs s3://BUCKET  keep blobs above 1 MB in an object store
holdfast store migrate URL                   bring an older schema up to date
holdfast store status URL                    schema, size, and the processes that have it open
holdfast store tenants URL                   list the tenants, which see nothing of each other: URL?tenant=NAME
holdfast store tenants URL --add NAME        create one
holdfast store tenants URL --remove NAME     remove one with all of its sessions, after a question
holdfast store keys URL                      list the API keys for `holdfast serve`
holdfast store keys URL --add WHO --right answer    create one, which is shown once; look, answer or operate
holdfast store keys URL --revoke ID          revoke one
holdfast store copy URL                      copy the sessions of this data directory to a store
holdfast store copy URL --back               copy the sessions of a store to this data directory

A copy imports each session as `holdfast import` does: its grants do not apply there, and sessions that exist are skipped. It is not signed,
so for labels everything in it counts as a stranger's; to keep labels, use `holdfast export` and `holdfast import`. The files of a session's
own folder travel with it; a folder of yours stays where it is.
Without URL it is the store that $HOLDFAST_STORE names, as for every other command. Other users of this machine see the words of a
command in the list of processes: put a password into that variable, or into ~/.pgpass. Exit codes: 1 when a session could not be copied.
"""

import argparse
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.commands.workers import describe_worker
from holdfast.cli.open_store import open_store
from holdfast.cli.prompts import confirm
from holdfast.cli.redaction import LazyRedactor
from holdfast.cli.shared_store import chosen_store
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.core import SessionId, SystemClock, escape_invisible, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput, SessionExists
from holdfast.core.events import RecordedEvent
from holdfast.session import import_archive, is_own_folder
from holdfast.store import (
    RIGHTS,
    STORE_VARIABLE,
    Arrival,
    Home,
    SessionSummary,
    Store,
    WorkStore,
    add_tenant,
    create_api_key,
    list_tenants,
    migrate_store,
    open_work_store,
    put_blobs_setting,
    remove_tenant,
    store_command,
    store_status,
)
from holdfast.worker import ENGINES, install_dispatch, open_dispatch

PROGRESS = "talking to the store"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "action", choices=["init", "migrate", "status", "tenants", "keys", "copy"], help="what to do"
    )
    parser.add_argument(
        "store",
        nargs="?",
        metavar="URL",
        help=f"such as postgresql://user@host/database (default: ${STORE_VARIABLE})",
    )
    parser.add_argument("--add", metavar="NAME", help="for tenants and keys: create one with this name")
    parser.add_argument(
        "--right", choices=RIGHTS, default="look", help="for keys --add: what it allows (default: look)"
    )
    parser.add_argument(
        "--remove", metavar="NAME", help="for tenants: remove this one with everything it has"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="for tenants --remove: do not ask")
    parser.add_argument("--revoke", metavar="ID", help="for keys: revoke this one")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="for init and migrate: what carries the jobs to workers (default: as it is, first pgqueuer)",
    )
    parser.add_argument(
        "--blobs",
        metavar="PLACE",
        help="for init and migrate: where blobs above 1 MB go, such as s3://bucket/holdfast or file:///mnt/blobs",
    )
    parser.add_argument("--back", action="store_true", help="for copy: from the store to this data directory")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    console = Console()
    arguments.url = chosen_store(arguments)
    match arguments.action:
        case "status":
            return await _status(arguments.url, console, is_json=arguments.json)
        case "tenants":
            return await _tenants(arguments, console)
        case "keys":
            return await _keys(arguments, console)
        case "copy":
            return await _copy(arguments.url, console, is_back=arguments.back, is_json=arguments.json)
        case _:
            steps = list(await migrate_store(arguments.url))
            if arguments.blobs:
                await put_blobs_setting(arguments.url, arguments.blobs)
                steps.append(f"large blobs in {arguments.blobs}")
            if await install_dispatch(arguments.url, engine=arguments.engine):
                steps.append("queue")
    if arguments.json:
        console.json({"steps": steps})
    else:
        console.say("applied: " + ", ".join(steps) if steps else "the schema is up to date")
    return exit_codes.OK


async def _status(url: str, console: Console, *, is_json: bool) -> int:
    found = await store_status(url)
    is_current = found.schema_found == found.schema_needed
    backlog = failed = 0
    if is_current:
        dispatch = open_dispatch(url, engine=found.engine)
        backlog, failed = await dispatch.backlog(), await dispatch.failed()
    if is_json:
        console.json({"status": found, "backlog": backlog, "failed": failed})
        return exit_codes.OK
    console.print(f"PostgreSQL {found.server}, schema {found.schema_found} of {found.schema_needed}")
    if not is_current:
        action = "init" if not found.schema_found else "migrate"
        is_newer = found.schema_found > found.schema_needed
        console.say(f"hint: {'upgrade Holdfast on this machine' if is_newer else store_command(action, url)}")
        return exit_codes.OK
    counts = (pluralize(found.sessions, "session"), f"{found.waiting} waiting for a person")
    console.print(
        ", ".join((*counts, pluralize(backlog, "job"), f"{failed} failed", f"{found.bytes / 1e6:.1f} MB"))
    )
    large = f"large blobs in {found.blobs} ({found.objects}, {found.object_bytes / 1e6:.1f} MB)"
    console.print(
        ", ".join(
            (
                f"tenant {found.tenant} of {found.tenants}",
                pluralize(found.keys, "API key"),
                f"engine {found.engine}",
                large if found.blobs else "all blobs in the database",
            )
        )
    )
    for risk in found.risks:
        console.print(f"  not safe: {risk}")
    for worker in found.workers:
        console.print(f"  {describe_worker(worker)}")
    if len({worker.key for worker in found.workers if worker.key}) > 1:
        console.say(
            "note: workers sign with different keys, so a program that waits is started again on another machine;"
            " give all of them one file of keys: $HOLDFAST_KEY_FILE",
            "ask",
            folds=True,
        )
    return exit_codes.OK


async def _tenants(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.remove and not await _remove_tenant(arguments, console):
        console.say("nothing was removed")
        return exit_codes.DENIED
    if arguments.add:
        await add_tenant(arguments.url, arguments.add)
        joint = "&" if "?" in arguments.url else "?"
        console.say(f"its processes use this address, with {joint}tenant={arguments.add} at its end")
    found = await list_tenants(arguments.url)
    if arguments.json:
        console.json(found)
    else:
        for name in found:
            console.print(name)
    return exit_codes.OK


async def _remove_tenant(arguments: argparse.Namespace, console: Console) -> bool:
    """Ask, and remove a tenant. Returns whether it was removed."""
    base, joint = arguments.url, "&" if "?" in arguments.url else "?"
    if not arguments.yes:
        if not console.is_interactive:
            raise InvalidInput("no terminal is attached to ask at", hint="--yes removes it without asking")
        if arguments.remove in await list_tenants(base):
            found = await store_status(f"{base}{joint}tenant={arguments.remove}")
            console.say(f"the tenant {arguments.remove} has {pluralize(found.sessions, 'session')}")
        question = f"Remove the tenant {arguments.remove} with its sessions, files and keys permanently?"
        if not await confirm(question, console):
            return False
    with ProgressIndicator(lambda: "removing"):
        await remove_tenant(base, arguments.remove)
    console.say(f"removed {arguments.remove}; the data directories of its machines keep their own files")
    return True


async def _keys(arguments: argparse.Namespace, console: Console) -> int:
    # Keys need no data directory, and that of this machine may belong to another tenant.
    with tempfile.TemporaryDirectory(prefix="holdfast-keys-") as folder:
        store = await open_work_store(Home(Path(folder)), arguments.url, clock=SystemClock())
        try:
            return await _change_keys(store, arguments, console)
        finally:
            await store.close()


async def _change_keys(store: WorkStore, arguments: argparse.Namespace, console: Console) -> int:
    if arguments.revoke and not await store.remove_api_key(arguments.revoke):
        raise InvalidInput(
            f"there is no key {arguments.revoke!r}", hint="list them with: holdfast store keys URL"
        )
    if arguments.add:
        key, text = await create_api_key(store, arguments.add, arguments.right)
        if arguments.json:
            console.json({"key": key, "text": text})
        else:
            console.say(f"the key of {key.principal}, which may {key.right}; it is shown only this once:")
            console.print(text)
        return exit_codes.OK
    found = await store.api_keys()
    if arguments.json:
        console.json(found)
    else:
        for each in found:
            console.print(f"{each.id}  {each.right:8}{escape_invisible(each.principal)}")
    return exit_codes.OK


async def _copy(url: str, console: Console, *, is_back: bool, is_json: bool) -> int:
    async with open_store(url="") as (home, local):
        shared = await open_work_store(home, url, clock=SystemClock(), redact=LazyRedactor(home.root))
        try:
            if is_back:
                copied, skipped, failed = await _copy_sessions(shared, partial(_bring, local, home), console)
            else:
                copied, skipped, failed = await _copy_sessions(
                    local, partial(_bring_to_machines, shared), console
                )
        finally:
            await shared.close()
    if is_json:
        console.json({"copied": copied, "skipped": skipped, "failed": failed})
    else:
        console.say(
            f"copied {pluralize(len(copied), 'session')}, skipped {len(skipped)}, failed {len(failed)}"
        )
        if copied:
            console.say(
                "a copy is not signed: for labels, everything in it counts as a stranger's", folds=True
            )
    return exit_codes.ERROR if failed else exit_codes.OK


Bring = Callable[[Path, SessionSummary], Awaitable[object]]
"""Imports the archive of a session into a store."""


async def _copy_sessions(
    source: Store, bring: Bring, console: Console
) -> tuple[list[str], list[str], list[str]]:
    """Copy every session, oldest first, so that the list keeps its order."""
    copied: list[str] = []
    skipped: list[str] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-copy-") as folder:
        for line in reversed(await source.sessions()):
            archive = Path(folder) / f"{line.id}.zip"
            try:
                await source.export_session(line.id, archive, now_ms=SystemClock().now_ms())
                await bring(archive, line)
                copied.append(line.id)
            except SessionExists:
                skipped.append(line.id)
            except HoldfastError as problem:
                failed.append(line.id)
                console.say(f"{line.id}: {problem}", "bad")
            archive.unlink(missing_ok=True)
    return copied, skipped, failed


async def _bring(target: Store, home: Home, archive: Path, line: SessionSummary) -> None:
    """Import a session into a data directory. A folder of its own is filled from its last restore point."""
    if is_own_folder(line.workspace, line.id):
        await import_archive(target, home, archive, now_ms=SystemClock().now_ms(), model=line.model)
    else:
        await _bring_to_machines(target, archive, line)


async def _bring_to_machines(target: Store, archive: Path, line: SessionSummary) -> None:
    """Import a session whose files stay where they are; the store has its restore points."""

    async def arrive(session: SessionId, recorded: Sequence[RecordedEvent]) -> Arrival:
        return Arrival(workspace=line.workspace, model=line.model)

    await target.import_session(archive, now_ms=SystemClock().now_ms(), prepare=arrive)
