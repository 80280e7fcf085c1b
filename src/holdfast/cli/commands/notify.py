"""Show where you are notified when a call waits or a turn ends, and send a test.

holdfast notify                      the targets of [notify] in config.toml
holdfast notify test                 send a test to every target
holdfast notify test phone
"""

import argparse
import os

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import SystemClock, format_age
from holdfast.core.errors import InvalidInput
from holdfast.services import DeliveryFailed, deliver, read_failures, sample_notification
from holdfast.session import NotifyTarget
from holdfast.store import Home

PROGRESS = "sending"
_HINT = (
    "add a table to config.toml: [notify.targets.phone] with kind and url; see docs/guides/notifications.md"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("action", nargs="?", choices=["list", "test"], default="list", help="default: list")
    parser.add_argument("target", nargs="?", help="only this target")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(arguments: argparse.Namespace) -> int:
    """List the targets, or send a test to them."""
    console, home = Console(), Home.default()
    targets = load_config(home).notify.targets
    if arguments.target is not None:
        if arguments.target not in targets:
            known = f"it has: {', '.join(targets)}" if targets else _HINT
            raise InvalidInput(f"config.toml has no target {arguments.target!r}", hint=known)
        targets = {arguments.target: targets[arguments.target]}
    if not targets and not arguments.json:
        console.say("no targets are configured")
        console.say(_HINT, "dim", folds=True)
    if arguments.action == "test":
        return await _test(targets, console, is_json=arguments.json)
    _list(targets, home, console, is_json=arguments.json)
    return exit_codes.OK


def _list(targets: dict[str, NotifyTarget], home: Home, console: Console, *, is_json: bool) -> None:
    failures = {each.target: each for each in read_failures(home)}
    if is_json:
        rows = [
            {"name": name, "kind": target.kind, "topics": target.topics, "failed": failures.get(name)}
            for name, target in targets.items()
        ]
        console.json(rows)
        return
    now_ms = SystemClock().now_ms()
    for name, target in targets.items():
        private = ", private" if target.private else ""
        console.show(f"{name}: {target.kind}, reports: {', '.join(target.topics)}{private}")
        if failed := failures.get(name):
            age = format_age(max(0, now_ms - failed.at_ms))
            console.show(f"  last failure {age} ago: {failed.reason}")


async def _test(targets: dict[str, NotifyTarget], console: Console, *, is_json: bool) -> int:
    results: dict[str, str] = {}
    for name, target in targets.items():
        try:
            await deliver(target, sample_notification(), os.environ, now_ms=SystemClock().now_ms())
        except DeliveryFailed as error:
            results[name] = str(error)
        else:
            results[name] = ""
        if not is_json:
            console.show(f"{name}: {results[name] or 'sent'}")
    if is_json:
        console.json(
            [{"name": name, "sent": not reason, "reason": reason} for name, reason in results.items()]
        )
    return exit_codes.ERROR if any(results.values()) else exit_codes.OK
