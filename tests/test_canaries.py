"""Canaries: secrets of every kind, in every place where they could turn up. None is at rest, shown, logged or handed on.

Not covered are files of the workspace, which are kept as they are, and the variables of a guest that had a secret in its code.
"""

import asyncio
import base64
import contextlib
import json
import logging
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import msgspec
import pytest
from tests.cli.commands import Run, run
from tests.mcp.toolset_harness import server_command

from holdfast.app import Runtime, redactor
from holdfast.policy import FixedPolicy
from holdfast.session import Settings
from holdfast.store import Home

__all__ = ["run"]

CANARIES = {
    kind: f"cnry-{kind}-9fK2xQ7w"
    for kind in (
        "server-env", "server-variable", "server-argument", "server-header", "server-url", "provider-key", "second-key",
        "keyring-key", "team-token", "notify-token", "notify-secret", "notify-password", "notify-url-long", "messenger-token",
        "messenger-variable",
    )
}  # fmt: skip
EXPORT_KEY = b"cnry-export-key-9fK2xQ7w\x00\xff\xfe\x80\n'\"\\"
CANARIES |= {"export-key": EXPORT_KEY.hex(), "export-key-in-base64": base64.b64encode(EXPORT_KEY).decode()}
CONFIG = f"""
[notify.targets.phone]
kind = "ntfy"
url = "https://ntfy.example.com/{CANARIES["notify-url-long"]}"
token = "{CANARIES["notify-token"]}"
[notify.targets.hook]
kind = "webhook"
url = "https://example.com"
secret = "${{CN_HOOK}}"
[notify.targets.mail]
kind = "email"
server = "smtp.example.com:587"
sender = "me@example.com"
recipient = "me@example.com"
user = "me"
password = "{CANARIES["notify-password"]}"
[messengers.bot]
kind = "telegram"
token = "{CANARIES["messenger-token"]}"
[messengers.team]
kind = "slack"
bot_token = "${{CN_BOT}}"
app_token = "keyring:slack"
"""
WRAPS: list[Callable[[str], str]] = [
    lambda canary: canary,
    lambda canary: f"say {canary}, please",
    lambda canary: f"https://user:{canary}@example.com/?q={canary}",
    lambda canary: json.dumps({"token": canary, canary: [canary]}),
    lambda canary: json.dumps(json.dumps([canary])),
    lambda canary: f"Authorization: Bearer {canary}\n\tat line 3",
]


def prepare(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand out every canary in the way of its kind."""
    (home / "teams" / "x").mkdir(parents=True)
    for folder in (home, home / "teams", home / "teams" / "x"):
        folder.chmod(0o700)
    tokens = home / "teams" / "x" / "tokens.json"
    tokens.write_text(json.dumps({"operator": CANARIES["team-token"]}))
    tokens.chmod(0o600)
    (home / "export-key").write_bytes(EXPORT_KEY)
    (home / "export-key").chmod(0o600)
    (home / "config.toml").write_text(CONFIG)
    command, *arguments = server_command("echo_secrets", "--token", CANARIES["server-argument"])
    servers = {
        "echo": {
            "command": command,
            "args": arguments,
            "env": {"A": CANARIES["server-env"], "B": "${CN_B}"},
            "variables": ["CN_B"],
        },
        "other": {"command": command, "args": server_command("echo_secrets")[1:]},
        "remote": {
            "url": f"http://127.0.0.1:9/mcp?key={CANARIES['server-url']}",
            "headers": {"X-Auth": CANARIES["server-header"]},
        },
    }
    (home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.setenv("CN_B", CANARIES["server-variable"])
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARIES["provider-key"])
    monkeypatch.setenv("GEMINI_API_KEY", CANARIES["second-key"])
    monkeypatch.setenv("CN_HOOK", CANARIES["notify-secret"])
    monkeypatch.setenv("CN_BOT", CANARIES["messenger-variable"])
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keyring = SimpleNamespace(
        get_password=lambda service, name: CANARIES["keyring-key"] if name == "openai" else None,
        errors=SimpleNamespace(KeyringError=RuntimeError),
    )
    monkeypatch.setitem(sys.modules, "keyring", keyring)


async def plant(home: Path, folder: Path, texts: list[str]) -> tuple[int, list[bytes]]:
    """Put each text into every place. Returns the number of places, and everything that the guest received."""
    received: list[bytes] = []
    places = 0
    log = logging.getLogger("holdfast")
    runtime = await Runtime.start(home=home)
    try:
        session = await runtime.create(
            workspace=folder,
            policy=FixedPolicy(default="allow"),
            model="openai:gpt-6.1-terra",
            name="canaries",
        )
        for number, text in enumerate(texts):
            (folder / "notes.txt").write_text(text)
            log.warning("a warning with %s", text)
            code = (
                f"x = {text!r}\nprint(x)\nread = world.read(path='notes.txt')\nfound = world.search(query='cnry')\n"
                f"{{'read': read, 'found': found, 'known': x in read, 'value': x}}"
            )
            received.append(msgspec.json.encode(await session.execute(code)))
            received.append(msgspec.json.encode(await session.execute(f"raise ValueError({text!r})")))
            await session.note("canary", text)
            places += 9
            if number == 0:
                received.append(msgspec.json.encode(await session.execute("(echo.work(), other.work())")))
                places += len(CANARIES)
    finally:
        await runtime.close()
    return places, received


async def check(home: Path, folder: Path, run: Run, texts: list[str]) -> int:
    places, received = await plant(home, folder, texts)
    given = [
        *(home / name for name in ("mcp-servers.json", "config.toml", "export-key", "teams/x/tokens.json")),
        folder / "notes.txt",
    ]
    at_rest = {
        path: path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and path not in given and not path.name.startswith("holdfast.db")
    }
    at_rest[home / "holdfast.db"] = _rows(home / "holdfast.db")
    shown = []
    for words in (
        ("show", "canaries", "--json"), ("show", "canaries"), ("audit", "canaries", "--json"), ("sessions", "--json"),
        ("search", "cnry", "--json"), ("mcp", "list", "--json"), ("config", "--json"), ("config",),
        ("config", "get", "messengers"), ("notify", "--json"), ("export", "--public-key", "--json"),
        ("export", "canaries", "-o", str(home.parent / "canaries.zip"), "--json"),
    ):  # fmt: skip
        done = await asyncio.to_thread(run, *words)
        shown.append(f"{done.out}{done.err}".encode())
    assert any(b"[redacted]" in each for each in shown)
    with ZipFile(home.parent / "canaries.zip") as archive:
        # The blobs are those of the store: files, and the state of a guest that had the canary in its code.
        names = [name for name in archive.namelist() if not name.startswith("blobs/")]
        assert "signature.json" in names
        at_rest |= {Path(name): archive.read(name) for name in names}
    for kind, secret in {
        **{kind: canary.encode() for kind, canary in CANARIES.items()},
        "key": EXPORT_KEY,
    }.items():
        assert {
            path.name: _around(content, secret) for path, content in at_rest.items() if secret in content
        } == {}, kind
        assert [number for number, each in enumerate(shown) if secret in each] == [], kind
        assert [number for number, each in enumerate(received) if secret in each] == [], kind
    return places


def _rows(database: Path) -> bytes:
    """Every column of every table but the blobs: a blob is a file, or the state of a guest that had the canary in its code."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        assert {"event", "session", "blob"} <= set(tables)
        values = [
            value
            for name in tables
            if name != "blob"
            for row in connection.execute(f"SELECT * FROM {name}")
            for value in row
        ]
    return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in values)


def _around(content: bytes, secret: bytes) -> bytes:
    """Where a canary was found, for a failed test."""
    at = content.index(secret)
    return content[max(0, at - 300) : at + 100]


def texts_for(count: int) -> list[str]:
    return [
        wrap(canary) + f" {number}"
        for number in range(count)
        for wrap in WRAPS
        for canary in CANARIES.values()
    ]


@pytest.mark.promise("P09")
async def test_no_canary_is_at_rest_shown_or_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    home, folder = tmp_path / "holdfast", tmp_path / "project"
    folder.mkdir()
    prepare(home, monkeypatch)
    assert await check(home, folder, run, texts_for(1)[::2]) >= 200


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.promise("P09")
async def test_ten_thousand_canaries_are_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    home, folder = tmp_path / "holdfast", tmp_path / "project"
    folder.mkdir()
    prepare(home, monkeypatch)
    assert await check(home, folder, run, texts_for(11)) >= 10_000


@pytest.mark.promise("P09")
def test_a_command_that_starts_no_server_knows_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    home = tmp_path / "holdfast"
    prepare(home, monkeypatch)
    (tmp_path / "code.py").write_text("\n".join(f"print({each!r})" for each in CANARIES.values()))
    assert run("exec", "code.py").code == 0
    kept = _rows(home / "holdfast.db") + b"".join(
        path.read_bytes() for path in home.glob("sessions/*/audit.jsonl")
    )
    # A key in the keyring is known to the processes that use it.
    found = [kind for kind, canary in CANARIES.items() if canary.encode() in kept]
    assert found == ["keyring-key"]


@pytest.mark.promise("P09")
def test_the_password_of_a_store_and_the_keys_that_machines_share_are_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{'ab' * 32}\n{'cd' * 32}\n")
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(keys))
    monkeypatch.setenv("HOLDFAST_STORE", "postgresql://me:cnry-store-9fK2xQ7w@127.0.0.1/db")
    redact = redactor((), Settings(), Home(tmp_path))
    for secret in ("cnry-store-9fK2xQ7w", "ab" * 32, "cd" * 32):
        assert redact.redact_text(f"say {secret}") == "say [redacted]"
