"""Requests to a running server as a program sends them, with the headers of our own page."""

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:  # Any: JSON of many shapes
        return json.loads(self.body)


def send(
    url: str,
    method: str,
    path: str,
    *,
    token: str = "",
    body: object = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request."""
    host = urlsplit(url).netloc
    given = {"Host": host}
    if token:
        given["Authorization"] = f"Bearer {token}"
    if method != "GET":
        given |= {
            "Origin": f"http://{host}",
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/json",
        }
    given |= headers or {}
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, body=content, headers=given)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


def enter(url: str, code: str) -> str:
    """Exchange a code for a token."""
    answer = send(url, "POST", "/api/enter", body={"code": code, "name": "test"})
    assert answer.status == 200, answer
    return str(answer.data["token"])
