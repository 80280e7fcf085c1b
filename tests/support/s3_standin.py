"""A stand-in for an S3-compatible service on loopback: objects in memory, as much of the protocol as one client needs."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

MODIFIED = "2026-01-02T03:04:05.000Z"
HTTP_MODIFIED = "Fri, 02 Jan 2026 03:04:05 GMT"


class S3StandIn:
    """A service with one bucket."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self.is_down = False
        self.requests: list[str] = []


@contextmanager
def s3_standin() -> Iterator[S3StandIn]:
    """Serve for the duration of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            if self._may_go_on():
                standin.objects[self._key()] = content
                self._answer(200, {"etag": '"x"'})

        def do_GET(self) -> None:
            if not self._may_go_on():
                return
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" in query:
                self._list(query.get("prefix", [""])[0])
                return
            content = standin.objects.get(self._key())
            if content is None:
                self._answer(404, {}, b"<Error><Code>NoSuchKey</Code></Error>")
            else:
                self._answer(200, {"etag": '"x"', "last-modified": HTTP_MODIFIED}, content)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"])).decode()
            if self._may_go_on():
                keys = [unescape(key) for key in re.findall("<Key>(.*?)</Key>", content)]
                for key in keys:
                    standin.objects.pop(key, None)
                deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
                self._answer(200, {}, f"<DeleteResult>{deleted}</DeleteResult>".encode())

        def _list(self, prefix: str) -> None:
            found = "".join(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{MODIFIED}</LastModified><ETag>x</ETag>"
                f"<Size>{len(content)}</Size></Contents>"
                for key, content in sorted(standin.objects.items())
                if key.startswith(prefix)
            )
            body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
            self._answer(200, {"content-type": "application/xml"}, body.encode())

        def _key(self) -> str:
            return unquote(urlsplit(self.path).path.removeprefix("/bucket/"))

        def _may_go_on(self) -> bool:
            standin.requests.append(f"{self.command} {quote(self._key())}")
            if standin.is_down:
                self._answer(
                    400, {}, b"<Error><Code>Down</Code><Message>the service is down</Message></Error>"
                )
            elif not self.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential=key/"):
                self._answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
            else:
                return True
            return False

        def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    standin = S3StandIn(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield standin
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
