"""The address of a store may hold a password, which nothing that is printed or logged shows."""

import asyncio
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.support.postgres import Databases, of_user

from holdfast.store import STORE_VARIABLE, DatabaseLogin

__all__ = ["run"]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:{}@127.0.0.1:1/x",
        "postgresql://me@127.0.0.1:1/x?sslmode=disable&password={}",
        "postgresql://me@127.0.0.1:x/x?sslpassword={}",
        "mysql://me:{}@127.0.0.1/x",
        "host=127.0.0.1 password={}",
    ],
)
def test_no_error_shows_the_password_of_an_address(run: Run, tmp_path: Path, address: str) -> None:
    log = tmp_path / "holdfast" / "logs" / "holdfast.log"
    for part in ("", "@", ":", "/", "?", "#", "[", "\u2100", "%zz", "/@", "&"):
        done = run("store", "status", address.format(f"hunter{part}secret"))
        assert done.code in (1, 2)
        assert not log.exists(), f"an internal error: {log.read_text()}"
        for piece in ("hunter", "secret"):
            assert piece not in done.out + done.err


def test_no_hint_shows_the_password_of_a_store_that_answers(
    run: Run, postgres_databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = of_user(asyncio.run(postgres_databases.take_blank()), "postgres", "hunter2secret")
    monkeypatch.setenv(STORE_VARIABLE, blank)
    for words in (
        ("store", "status", blank),
        ("store", "status", blank, "--json"),
        ("store", "tenants", blank),
        ("sessions",),
        ("workers",),
        ("queue",),
        ("doctor",),
        ("doctor", "--json"),
    ):
        done = run(*words)
        assert "hunter2secret" not in done.out + done.err, words


def test_the_repr_of_a_login_has_no_address() -> None:
    login = DatabaseLogin(
        url="postgresql://me:hunter2@127.0.0.1/x", settings={"a": "hunter2"}, enter="SET ROLE x"
    )
    assert "hunter2" not in f"{login!r} {login}"
