"""Requests that no browser sends, by a socket: smuggled, chunked, huge, slow, and under other names. The call still waits."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import h11
import pytest
import uvicorn
from starlette.applications import Starlette
from tests.web.conftest import WebServer
from tests.web.http import Answer, send
from tests.web.sample_home import SampleHome, fill
from uvicorn.server import ServerState

from holdfast.app import Runtime
from holdfast.mcp import serve_on_loopback
from holdfast.session import Settings
from holdfast.web import serve_web
from holdfast.web.timed_connection import TimedConnection

pytestmark = pytest.mark.timeout(300)
"""A server on a slow machine takes its time."""

Exchange = Callable[[bytes], list[int]]


@pytest.fixture(scope="module")
def sample(server: WebServer) -> SampleHome:
    sample = asyncio.run(fill(server.home / "holdfast", waiting=("target.txt", "race.txt")))
    (server.home / "shop" / "in.txt").write_text("inside")
    os.symlink("/etc/passwd", server.home / "shop" / "link")
    return sample


@pytest.fixture
def exchange(server: WebServer, sample: SampleHome) -> Iterator[Exchange]:
    """Send bytes and read the statuses of the answers. Afterwards the call still waits, and the server still answers."""

    def sent(content: bytes) -> list[int]:
        host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            found = b""
            try:
                connection.sendall(content)
                while piece := connection.recv(1 << 16):
                    found += piece
            except OSError:
                pass  # it was closed before everything was read
        return [int(line.split()[1]) for line in found.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]

    yield sent
    _waiting(server, "target.txt")


def _waiting(server: WebServer, name: str) -> Any:  # Any: JSON
    """The call that would write a file."""
    found = send(server.url, "GET", "/api/waiting", token=server.token).data
    [call] = [each for each in found if name in each["effect"]]
    return call


def _answer(server: WebServer, *, token: bool) -> tuple[bytes, bytes, bytes]:
    """The path, the headers and the body of an approval."""
    call = _waiting(server, "target.txt")
    host = server.url.removeprefix("http://").rstrip("/")
    headers = (
        f"Host: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\n{f'Authorization: Bearer {server.token}' if token else 'X: y'}\r\n"
    )
    body = json.dumps({"verdict": "approve", "digest": call["escalation"]["digest"]})
    return (
        f"/api/waiting/{call['session']}/{call['escalation']['id']}".encode(),
        headers.encode(),
        body.encode(),
    )


@pytest.mark.parametrize(
    ("framing", "statuses"),
    [
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", ([411], [400])),
        (b"Transfer-Encoding: chunked", ([411],)),
        (b"Content-Length: 5\r\nContent-Length: 6", ([400],)),
        (b"Transfer-Encoding: xchunked", ([400], [411])),
        (b"Transfer-Encoding : chunked", ([400],)),
        (b"Content-Length: +5", ([400],)),
        (b"Content-Length: 1048577", ([413],)),
        (b"X: " + b"a" * 2_000_000, ([400], [])),
    ],
)
def test_a_request_in_the_body_of_another_is_not_seen(
    server: WebServer, exchange: Exchange, framing: bytes, statuses: tuple[list[int], ...]
) -> None:
    path, headers, body = _answer(server, token=True)
    inner = b"POST " + path + b" HTTP/1.1\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body
    found = exchange(b"POST /api/enter HTTP/1.1\r\n" + headers + framing + b"\r\n\r\n0\r\n\r\n" + inner)
    assert found in statuses


def test_many_small_chunks_are_not_read(exchange: Exchange, server: WebServer) -> None:
    for token in (True, False):
        _, headers, _ = _answer(server, token=token)
        chunks = b"1\r\na\r\n" * 200_000
        found = exchange(
            b"POST /api/sessions HTTP/1.1\r\n" + headers + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
        )
        assert found in ([411], [])


@pytest.mark.parametrize(
    "name",
    [
        "{}:80",
        "{}@evil.test",
        "{}.",
        "{}#",
        "{}/",
        "{},evil.test",
        "evil.test\r\nHost: {}",
        "LOCALHOST:{port}",
        "localhost.:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "127.0.0.1:0{port}",
        "\u246027.0.0.1:{port}",
        "",
    ],
)
def test_a_name_that_is_nearly_ours_is_refused(server: WebServer, exchange: Exchange, name: str) -> None:
    host = server.url.removeprefix("http://").rstrip("/")
    given = name.replace("{}", host).replace("{port}", host.partition(":")[2]).encode()
    request = b"GET /api/waiting HTTP/1.1\r\nHost: " + given + b"\r\nConnection: close\r\n"
    assert exchange(request + f"Authorization: Bearer {server.token}\r\n\r\n".encode()) in ([421], [400])


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "CONNECT", "GET"])
def test_no_other_method_answers(server: WebServer, exchange: Exchange, method: str) -> None:
    path, headers, body = _answer(server, token=True)
    request = f"{method} ".encode() + path + b"?_method=POST HTTP/1.1\r\nX-HTTP-Method-Override: POST\r\n"
    assert exchange(request + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body) == [404]


def test_a_token_counts_in_its_header_only(server: WebServer, exchange: Exchange) -> None:
    path, _, body = _answer(server, token=False)
    token = server.token
    for headers in (
        {"Cookie": f"token={token}"},
        {"Authorization": f"Basic {token}"},
        {"Authorization": f"bearer {token}"},
        {"Authorization": f"Bearer  {token}"},
        {"Authorization": f"Bearer x, Bearer {token}"},
        {"Authorization": f"Bearer {token}x"},
        {"X-Token": token},
    ):
        assert send(server.url, "POST", path.decode(), body=body, headers=headers).status == 401, headers
    assert send(server.url, "POST", f"{path.decode()}?token={token}", body=body).status == 401


@pytest.mark.parametrize("origin", ["null", "{}/", "{} http://evil.test", "{}.evil.test", "https:{}", ""])
def test_an_origin_that_is_nearly_ours_is_refused(server: WebServer, exchange: Exchange, origin: str) -> None:
    path, _, body = _answer(server, token=False)
    own = server.url.rstrip("/")
    given = origin.replace("https:{}", own.replace("http:", "https:")).replace("{}", own)
    answer = send(server.url, "POST", path.decode(), token=server.token, body=body, headers={"Origin": given})
    assert answer.status == 403
    for read in ("/api/stream", "/api/waiting"):
        answer = send(server.url, "GET", read, token=server.token, headers={"Origin": given})
        assert answer.status == 403


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "/etc/passwd",
        "link",
        "..%2f..%2fetc%2fpasswd",
        "\u2025/\u2025/etc/passwd",
        "\uff0e\uff0e/\uff0e\uff0e/etc/passwd",
        "..\\..\\etc\\passwd",
        "in.txt\0",
        "file:///etc/passwd",
        "~/.bashrc",
        "/proc/self/environ",
        "/workspace/../../../etc/passwd",
    ],
)
def test_a_file_outside_the_workspace_is_not_read(
    server: WebServer, sample: SampleHome, exchange: Exchange, path: str
) -> None:
    place = f"/api/sessions/{sample.waiting[0]}/file?path="
    assert send(server.url, "GET", f"{place}in.txt", token=server.token).data["text"] == "inside"
    answer = send(server.url, "GET", place + quote(path), token=server.token)
    assert answer.status == 400
    assert b"root:" not in answer.body


@pytest.mark.usefixtures("sample")
def test_of_many_answers_at_once_one_counts(server: WebServer) -> None:
    call = _waiting(server, "race.txt")
    path = f"/api/waiting/{call['session']}/{call['escalation']['id']}"
    rule = send(server.url, "GET", f"{path}/rule?scope=session&offer=1", token=server.token).data["text"]
    once = {"verdict": "approve", "digest": call["escalation"]["digest"]}
    bodies = [once, {**once, "verdict": "deny"}, {**once, "scope": "session", "offer": 1, "rule": rule}]

    def answer(number: int) -> tuple[int, Answer]:
        return number % 3, send(server.url, "POST", path, token=server.token, body=bodies[number % 3])

    with ThreadPoolExecutor(9) as threads:
        answers = list(threads.map(answer, range(9)))
    accepted = {kind for kind, each in answers if each.status == 200}
    assert len(accepted) == 1, [(kind, each.status, each.body) for kind, each in answers]
    assert {each.status for _, each in answers} <= {200, 409}


async def test_a_request_that_does_not_arrive_is_given_up() -> None:
    config = uvicorn.Config("unused:app", http=TimedConnection, log_config=None, lifespan="off")
    config.load_app = lambda: None  # type: ignore[method-assign]
    config.load()

    class _Transport(asyncio.Transport):
        is_cut = False

        def abort(self) -> None:
            self.is_cut = True

    for sent, is_given_up in (
        (b"", True),
        (b"GET / HTTP/1.1\r\nHost: ", True),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", False),
    ):
        connection, transport = TimedConnection(config, ServerState(), {}), _Transport()
        connection.connection_made(transport)
        if sent:
            connection.conn.receive_data(sent)
        while connection.conn.next_event() not in (h11.NEED_DATA, h11.PAUSED):
            pass
        connection._look()
        assert not transport.is_cut
        connection._look()
        assert transport.is_cut is is_given_up, sent
        assert connection._timer is not None
        connection._timer.cancel()


@asynccontextmanager
async def web_port(home: Path) -> AsyncIterator[int]:
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    async with serve_web(runtime, port=0) as running:
        yield running.port
    await runtime.close()


@asynccontextmanager
async def mcp_port(_: Path) -> AsyncIterator[int]:
    async with serve_on_loopback(Starlette(), port=0) as address:
        yield int(address.rpartition(":")[2])


@pytest.mark.parametrize("serve", [web_port, mcp_port])
async def test_the_second_packet_of_an_answer_does_not_wait_for_the_first(
    tmp_path: Path, serve: Callable[[Path], AbstractAsyncContextManager[int]]
) -> None:
    """Without TCP_NODELAY, every answer on a kept connection takes 40 ms, the delayed acknowledgement of its reader."""
    async with serve(tmp_path / "holdfast") as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        await reader.readline()
        [found] = _connected(port)
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        found.close()
        writer.close()


def _connected(port: int) -> list[socket.socket]:
    """The connections to a port that this process has accepted."""
    found = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile, or is not connected
            if os.readlink(file).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(file.name))) as each:
                    if each.family == socket.AF_INET and each.getsockname()[1] == port and each.getpeername():
                        found.append(each.dup())
    return found
