"""The operator's commands: a store is prepared, workers run its sessions, and every other command can look at them."""

import asyncio
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.commands import environment, holdfast
from tests.cli.test_task import runs, script
from tests.support.fork_server import forked_python

from holdfast.store import connect_database

if TYPE_CHECKING:
    from tests.support.postgres import Databases


@pytest.fixture
def blank(postgres_databases: "Databases") -> str:
    return asyncio.run(postgres_databases.take_blank())  # it stays blank, so it is not given back


@pytest.fixture
def url(postgres_databases: "Databases") -> Iterator[str]:
    address = asyncio.run(postgres_databases.take())
    yield address
    postgres_databases.give_back(address)


def test_a_store_is_prepared_once_and_says_so(blank: str, tmp_path: Path) -> None:
    unprepared = holdfast("sessions", home=tmp_path, HOLDFAST_STORE=blank)
    assert unprepared.returncode == 1
    assert "holdfast store init" in unprepared.stderr
    assert "schema 0 of" in holdfast("store", "status", blank, home=tmp_path).stdout
    first = holdfast("store", "init", blank, "--json", home=tmp_path)
    assert json.loads(first.stdout)["steps"][0] == "0001 journals"
    assert json.loads(first.stdout)["steps"][-1] == "queue"
    assert json.loads(holdfast("store", "migrate", blank, "--json", home=tmp_path).stdout) == {"steps": []}
    status = json.loads(holdfast("store", "status", blank, "--json", home=tmp_path).stdout)
    assert (status["status"]["schema_found"], status["backlog"]) == (status["status"]["schema_needed"], 0)


def test_the_status_of_a_newer_schema_says_to_upgrade(blank: str, tmp_path: Path) -> None:
    holdfast("store", "init", blank, home=tmp_path)
    asyncio.run(add_migration_of_the_future(blank))
    status = holdfast("store", "status", blank, home=tmp_path)
    assert "schema 1000 of" in status.stdout
    assert status.stderr == "hint: upgrade Holdfast on this machine\n"


async def add_migration_of_the_future(url: str) -> None:
    connection = await connect_database(url, is_admin=True)
    await connection.execute("INSERT INTO migration (number, title) VALUES (1000, 'of the future')")
    await connection.close()


def test_a_session_in_a_folder_of_this_machine_says_that_it_stays_here(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    task = ("-m", script(tmp_path, "Hello."), "-p", "project", "hi")
    here = holdfast("-w", str(folder), "--trust", *task, home=tmp_path, HOLDFAST_STORE=url)
    code = folder / "code.py"
    code.write_text("1\n")
    executed = holdfast("exec", "-w", str(folder), str(code), home=tmp_path, HOLDFAST_STORE=url)
    ran = holdfast("run", "-w", str(folder), "true", home=tmp_path, HOLDFAST_STORE=url)
    for done in (here, executed, ran):
        assert f"only workers here run it (host:{socket.gethostname()})" in done.stderr.replace("\n", " ")
    anywhere = holdfast("--scratch", *task, home=tmp_path, HOLDFAST_STORE=url)
    assert "only workers here" not in anywhere.stderr


def backlog(url: str, home: Path) -> int:
    return int(json.loads(holdfast("store", "status", url, "--json", home=home).stdout)["backlog"])


def test_a_mistaken_address_says_what_is_wrong(tmp_path: Path) -> None:
    for address, words in (
        ("mysql://host/db", "not the address of a store"),
        (f"postgresql://me:secret@/x?host={tmp_path}", "cannot be reached"),
    ):
        done = holdfast("store", "status", address, home=tmp_path)
        assert done.returncode != 0
        assert words in done.stderr
        assert "secret" not in done.stderr
    assert "no store is named" in holdfast("worker", home=tmp_path).stderr


def test_a_worker_runs_what_is_posted_and_other_commands_see_it(url: str, tmp_path: Path) -> None:
    holdfast("store", "init", url, home=tmp_path)
    model = script(tmp_path, "ready", runs("open('a.txt', 'w').write('x')"), "I wrote a.txt.")
    task = holdfast("-m", model, "-p", "project", "-n", "shared", "--store", url, "say ready", home=tmp_path)
    assert task.stdout == "ready\n", task.stderr
    sent = holdfast("post", "shared", "write a file", "--store", url, "--id", "m1", home=tmp_path)
    assert sent.returncode == 0, sent.stderr
    worker = subprocess.Popen(
        [*forked_python("-m", "holdfast"), "worker", "--store", url, "--places", "2"],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        done = holdfast("show", "shared", "--json", home=tmp_path, HOLDFAST_STORE=url)
        while "I wrote a.txt." not in done.stdout:  # the test's time limit ends it
            assert worker.poll() is None, worker.communicate()
            time.sleep(0.2)
            done = holdfast("show", "shared", "--json", home=tmp_path, HOLDFAST_STORE=url)
        # The answer is on record a moment before the job is; a worker that is stopped in between leaves the job for another.
        while backlog(url, tmp_path):
            time.sleep(0.2)
    finally:
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=60)
    assert worker.returncode == 0, err
    assert "stopped" in err
    assert "a.txt" in holdfast("proposals", "show", "shared", home=tmp_path, HOLDFAST_STORE=url).stdout
    assert backlog(url, tmp_path) == 0
    assert holdfast("verify", "--all", home=tmp_path, HOLDFAST_STORE=url).returncode == 0


def test_sessions_are_copied_both_ways(url: str, tmp_path: Path) -> None:
    model = script(tmp_path, runs("open('a.txt', 'w').write('one')"), "hello")
    holdfast("-m", model, "-p", "scratch", "-n", "mine", "--scratch", "hi", home=tmp_path)
    there = holdfast("store", "copy", url, "--json", home=tmp_path)
    assert len(json.loads(there.stdout)["copied"]) == 1, there.stderr
    assert len(json.loads(holdfast("store", "copy", url, "--json", home=tmp_path).stdout)["skipped"]) == 1
    assert "mine" in holdfast("sessions", home=tmp_path, HOLDFAST_STORE=url).stdout
    holdfast("delete", "mine", "--yes", home=tmp_path)
    back = holdfast("store", "copy", "--back", "--json", home=tmp_path, HOLDFAST_STORE=url)
    assert len(json.loads(back.stdout)["copied"]) == 1, back.stderr
    assert "hello" in holdfast("show", "mine", home=tmp_path).stdout
    assert holdfast("files", "cat", "mine", "a.txt", home=tmp_path).stdout == "one"


def test_sessions_are_copied_back_to_a_machine_that_never_had_its_own(url: str, tmp_path: Path) -> None:
    model = script(tmp_path, runs("open('a.txt', 'w').write('one')"), "hello")
    started = holdfast(
        "-m", model, "-p", "scratch", "-n", "mine", "--scratch", "hi", home=tmp_path, HOLDFAST_STORE=url
    )
    assert started.returncode == 0, started.stderr
    back = holdfast("store", "copy", "--back", "--json", home=tmp_path, HOLDFAST_STORE=url)
    assert len(json.loads(back.stdout)["copied"]) == 1, back.stdout + back.stderr
    assert "hello" in holdfast("show", "mine", home=tmp_path).stdout
    assert holdfast("files", "cat", "mine", "a.txt", home=tmp_path).stdout == "one"
    assert "mine" in holdfast("sessions", home=tmp_path, HOLDFAST_STORE=url).stdout
