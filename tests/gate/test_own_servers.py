"""The link to the web page: only where one runs, and nothing in it but the session."""

import os
import subprocess
import sys
from pathlib import Path

from holdfast.app import Runtime
from holdfast.core import SessionId
from holdfast.gate import WebAddress, published_address, session_link
from holdfast.session import Settings
from holdfast.store import Home
from holdfast.web import serve_web

SESSION = SessionId("2026-01-01-00-00-00-000-abcd")


def test_a_link_leads_to_the_newest_server_while_it_runs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert session_link(home, SESSION) == ""
    with published_address(home, WebAddress(origin="http://127.0.0.1:1", since_ms=1)):
        with published_address(home, WebAddress(origin="https://box.example", since_ms=2)):
            assert session_link(home, SESSION) == f"https://box.example/#/s/{SESSION}"
        assert session_link(home, SESSION) == f"http://127.0.0.1:1/#/s/{SESSION}"
    assert session_link(home, SESSION) == ""
    assert list(home.web_servers.iterdir()) == []


def test_only_its_owner_can_read_where_a_server_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with published_address(home, WebAddress(origin="http://127.0.0.1:1", since_ms=1)):
        [path] = home.web_servers.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        assert home.web_servers.stat().st_mode & 0o777 == 0o700


def test_a_killed_server_leaves_no_link_and_its_file_goes_with_the_next(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib\n"
        "from holdfast.gate import WebAddress, published_address\n"
        "from holdfast.store import Home\n"
        "home = Home(pathlib.Path(sys.argv[1]))\n"
        "with published_address(home, WebAddress(origin='http://127.0.0.1:1', since_ms=1)):\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=os.environ, check=False)
    assert done.returncode == -9
    home = Home(tmp_path)
    assert len(list(home.web_servers.iterdir())) == 1
    assert session_link(home, SESSION) == ""
    with published_address(home, WebAddress(origin="http://127.0.0.1:2", since_ms=2)):
        assert len(list(home.web_servers.iterdir())) == 1


def test_what_is_not_an_address_gives_no_link(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.web_servers.mkdir(mode=0o700)
    (home.web_servers / "a.json").symlink_to("/etc/hostname")
    (home.web_servers / "b.json").write_text("{")
    (home.web_servers / "c.json").mkdir()
    os.mkfifo(home.web_servers / "d.json")
    assert session_link(home, SESSION) == ""


def test_a_session_id_cannot_change_the_page(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with published_address(home, WebAddress(origin="http://127.0.0.1:1", since_ms=1)):
        assert session_link(home, SessionId("a/../b?x#y")) == "http://127.0.0.1:1/#/s/a%2F..%2Fb%3Fx%23y"


async def test_a_web_server_can_be_found_while_it_serves(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path, settings=Settings(), servers=())
    try:
        async with serve_web(runtime, port=0) as server:
            assert session_link(runtime.home, SESSION) == f"http://127.0.0.1:{server.port}/#/s/{SESSION}"
        assert session_link(runtime.home, SESSION) == ""
    finally:
        await runtime.close()
