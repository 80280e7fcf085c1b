"""What a person hands to a server is secret: in no file at rest, not shown, and not handed to a guest or another server."""

import asyncio
import base64
import json
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import Run, run
from tests.mcp.toolset_harness import spec_for

from holdfast.app import Runtime
from holdfast.core import Ok
from holdfast.core.errors import InvalidConfig
from holdfast.mcp import ServerSpec, load_servers, secrets_of
from holdfast.policy import FixedPolicy

__all__ = ["run"]

NAMES = [
    "API_KEY", "ACCESS", "BEARER", "CONNECTION", "DATABASE_URL", "DSN", "JWT", "LICENSE", "PAT", "PIN", "SALT", "SIGNING",
    "USERNAME", "WEBHOOK", "X",
]  # fmt: skip


def canary(number: int, kind: str) -> str:
    return f"cn{number}{kind}7f3Qz"


def given() -> tuple[ServerSpec, dict[str, str], list[str]]:
    """A server that is given a secret in every way, the environment it needs, and the secrets."""
    env, environ, secrets = {}, {}, []
    for number, name in enumerate(NAMES):
        literal, variable = canary(number, "lit"), canary(number, "var")
        env[name] = literal
        env[f"{name}_2"] = f"${{MY_{name}}}"
        environ[f"MY_{name}"] = variable
        secrets += [literal, variable]
    environ |= {
        "MY_URL": "https://me:cnpw7f3Qz@db.example/x?q=cnquery7f3Qz",
        "MY_ARG": "cnarg7f3Qz",
        "MY_TEXT": "host=db;password=cndsn7f3Qz",
    }
    args = [
        "--url",
        "${MY_URL}",
        "--api-key",
        "cnkey7f3Qz",
        "--token=cntok7f3Qz",
        "${MY_ARG}",
        "--dsn",
        "${MY_TEXT}",
    ]
    secrets += ["cnpw7f3Qz", "cnquery7f3Qz", "cnarg7f3Qz", "cnkey7f3Qz", "cntok7f3Qz", "cndsn7f3Qz", "cn-six"]
    env["SHORT"] = "cn-six"
    spec = spec_for("echo_secrets", *args, name="echo", env=env, variables=tuple(environ))
    return spec, environ, secrets


@pytest.mark.promise("P09")
async def test_f47_what_a_server_is_given_is_shown_and_kept_nowhere(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, environ, secrets = given()
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    other = spec_for("echo_secrets", name="other")
    home = tmp_path / "holdfast"
    runtime = await Runtime.start(home=home, servers=[spec, other])
    session = await runtime.create(
        needs_model=False,
        policy=FixedPolicy(default="allow"),
        name="work",
        workspace=_made(tmp_path / "project"),
    )
    outcome = await session.execute("found = echo.work()\nprint(found)\nfound")
    assert isinstance(outcome, Ok), outcome
    received = msgspec.json.encode(outcome)
    assert b"[redacted]" in received
    assert b"SIGNING" in received  # the names stay
    elsewhere = msgspec.json.encode(await session.execute("other.work()"))
    failed = msgspec.json.encode(await session.execute("raise ValueError(str(echo.work()))"))
    await session.execute("open('a.txt', 'w').write(str(echo.work()))")
    await runtime.close()
    (home / "mcp-servers.json").write_text(
        json.dumps({spec.name: {"command": spec.command, "env": spec.env, "variables": list(environ)}})
    )
    shown = [await asyncio.to_thread(run, "show", "work", *more) for more in ((), ("--json",), ("--audit",))]
    shown.append(await asyncio.to_thread(run, "search", "cn", "--json"))
    at_rest = {
        path: path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name != "mcp-servers.json"
    }
    assert home / "holdfast.db" in at_rest
    for secret in secrets:
        for text in (received, elsewhere, failed, *(f"{each.out}{each.err}".encode() for each in shown)):
            assert secret.encode() not in text, secret
        assert [path for path, content in at_rest.items() if secret.encode() in content] == [], secret


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_f47_every_value_is_secret_by_its_place_and_not_by_its_name() -> None:
    spec, environ, secrets = given()
    assert set(secrets) <= set(secrets_of(spec, environ))


@pytest.mark.parametrize(
    "header",
    ["Bearer cnhead7f3Qz", "cnhead7f3Qz", "session=cnhead7f3Qz; theme=dark"],
)
def test_f47_a_header_is_secret(header: str) -> None:
    spec = ServerSpec(name="s", url="https://x.example", headers={"X-Anything": header})
    assert any(secret.endswith("cnhead7f3Qz") for secret in secrets_of(spec, {}))
    assert "bearer" not in {secret.casefold() for secret in secrets_of(spec, {})}


def test_f47_the_password_in_basic_authentication_is_secret() -> None:
    header = "Basic " + base64.b64encode(b"me:cnbasic7f3Qz").decode()
    spec = ServerSpec(name="s", url="https://x.example", headers={"Authorization": header})
    assert {"cnbasic7f3Qz", header.split()[1]} <= set(secrets_of(spec, {}))


@pytest.mark.parametrize(
    "value",
    [
        "true", "info", "verbose", "production", "localhost", "100000", "2026-11-17", "us-east-1", "/usr/local/bin",
        "/usr/bin:/home/me/bin", "./data", "~/notes", "docs/notes", "https://api.example.com", "http://localhost:8080/",
        "arguments", "session-opened", "approve", "github",
    ],
)  # fmt: skip
def test_f47_an_ordinary_value_is_not_redacted(value: str) -> None:
    assert secrets_of(ServerSpec(name="github", command="x", env={"MODE": value}), {}) == ()


def test_f47_a_value_marked_public_is_not_redacted() -> None:
    document = {
        "s": {
            "command": "x",
            "env": {"REGION": "somewhere-7", "MODE": "${MY_MODE}", "OTHER": "not-public-1"},
            "variables": ["MY_MODE"],
            "public": ["REGION", "MY_MODE"],
        }
    }
    (spec,) = load_servers(document)
    assert secrets_of(spec, {"MY_MODE": "anything-8"}) == ("not-public-1",)


def test_f47_public_names_only_what_the_entry_has() -> None:
    with pytest.raises(InvalidConfig, match="'public' names 'REGOIN'"):
        load_servers({"s": {"command": "x", "env": {"REGION": "a"}, "public": ["REGOIN"]}})


@pytest.mark.promise("P09")
@pytest.mark.parametrize(
    "args",
    [
        ["--header", "Authorization: Bearer cnway7f3Qz"],
        ["-H", "X-Api-Key:cnway7f3Qz"],
        ["--header=Authorization: Bearer cnway7f3Qz"],
        ["run", "-e", "GITHUB_TOKEN=cnway7f3Qz", "image"],
        ["--env=GITHUB_TOKEN=cnway7f3Qz"],
        ["postgresql://me:cnway7f3Qz@db.example/x"],
        ["--url=https://cnway7f3Qz@git.example/x"],
        ["https://mcp.example/sse?key=cnway7f3Qz"],
    ],
)
def test_f47_a_secret_written_in_an_argument_is_secret(args: list[str]) -> None:
    assert "cnway7f3Qz" in secrets_of(ServerSpec(name="s", command="x", args=tuple(args)), {})


@pytest.mark.promise("P09")
@pytest.mark.parametrize(
    "value",
    [
        '{"Authorization": "Bearer cnway7f3Qz", "Notion-Version": "2022-06-28"}',
        '{"hosts": [{"name": "db", "auth": {"password": "cnway7f3Qz"}}]}',
        "https://cnway7f3Qz@git.example/x",
        "https://cnway7f3Qz:x-oauth-basic@git.example/x",
        "https://x.example/cb#access_token=cnway7f3Qz",
        "first7f3Qz,cnway7f3Qz",
        "me:cnway7f3Qz",
        "password=cnway7f3Qz",
        "Authorization: Bearer cnway7f3Qz",
    ],
)
def test_f47_the_parts_of_a_value_are_secret_on_their_own(value: str) -> None:
    assert "cnway7f3Qz" in secrets_of(ServerSpec(name="s", command="x", env={"ANY": value}), {})


@pytest.mark.parametrize(
    "args",
    [
        ["-y", "@modelcontextprotocol/server-filesystem", "/srv/data"],
        ["mcp-remote", "https://mcp.example.com/sse", "--transport", "http-only"],
        ["--mode=careful", "--log:verbose", "name=somebody"],
    ],
)
def test_f47_an_ordinary_argument_is_not_redacted(args: list[str]) -> None:
    assert secrets_of(ServerSpec(name="s", command="x", args=tuple(args)), {}) == ()
