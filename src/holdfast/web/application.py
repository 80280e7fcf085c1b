"""The ASGI application of the web server: guard, API, event stream and the files of the page."""

import asyncio
import gzip
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from holdfast.core import Value, encode, named_person
from holdfast.core.errors import (
    CommitConflict,
    EscalationUnknown,
    HoldfastError,
    InvalidInput,
    SessionHeld,
    SessionNotFound,
    SessionNotReady,
)
from holdfast.store import API_KEY_PREFIX, Right, check_api_key
from holdfast.web.api import changes, devices, files, history, inbox, policies, records, sessions, teams
from holdfast.web.context import WebContext, WebRequest
from holdfast.web.devices import Device, has_right
from holdfast.web.event_feed import follow
from holdfast.web.guard import ENTER, HEADERS, MAX_BODY_BYTES, bearer, find_refusal
from holdfast.web.peer import is_own_peer
from holdfast.web.route import Route

RECHECK_MS = 1_000
"""How long an open stream may go on without another look at its token."""
STREAM = "/api/stream"
ROUTES: tuple[Route, ...] = (
    *inbox.ROUTES,
    *sessions.ROUTES,
    *changes.ROUTES,
    *history.ROUTES,
    *records.ROUTES,
    *files.ROUTES,
    *policies.ROUTES,
    *teams.ROUTES,
    *devices.ROUTES,
)
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
_BROWSERS = {"Firefox": "Firefox", "Edg": "Edge", "Chrome": "Chrome", "Safari": "Safari"}
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Mac OS": "macOS",
    "Windows": "Windows",
    "Linux": "Linux",
}
"""By a word of the User-Agent header; the first one that it contains counts."""
_CONFLICTS = (EscalationUnknown, SessionHeld, SessionNotReady, CommitConflict)
_STATIC = re.compile(r"/static/((?:[a-z_-]+/)?[a-z_-]+\.(js|css|svg))")
Scope = MutableMapping[str, Any]  # Any: as ASGI defines it
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
logger = logging.getLogger(__name__)


class EnterBody(Value, forbid_unknown_fields=True):
    """The one-time code of a link, and the name of the device; without one, the name of its browser."""

    code: str
    name: str = ""


class Entered(Value):
    """The token to send with every request, and what it allows."""

    token: str
    device: Device


class ErrorBody(Value, omit_defaults=False):
    """Why a request failed, and what to do next."""

    code: str
    text: str
    hint: str


class _TooLarge(HoldfastError):
    code = "too-large"


class WebApplication:
    """Answers requests. One way in: every request passes the guard, and every response has the headers of the guard."""

    def __init__(self, context: WebContext, *, origins: tuple[str, ...], port: int) -> None:
        self._context = context
        self._origins = origins
        self._port = port
        self._table = [
            (route, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]{1,200})", route.path))) for route in ROUTES
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection of the ASGI server."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, receive, send)
        # Anything else, such as a WebSocket, is closed without an answer.

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        try:
            owner = await self._key_owner(scope)
        except HoldfastError as error:
            await _send_json(send, 503, _error_body(error))
            return
        refusal = find_refusal(
            method=method,
            path=path,
            headers=scope["headers"],
            origins=self._origins,
            tokens=self._context.devices.tokens(),
            has_api_key=owner is not None,
        )
        if refusal is not None:
            refused = encode(ErrorBody(code=refusal.code, text=refusal.text, hint=""))
            # Nobody reads the rest of a request that was refused.
            await _send(send, refusal.status, refused, "application/json", (b"connection", b"close"))
            return
        try:
            if path == STREAM and method == "GET":
                await self._stream(scope, receive, send, owner)
            elif path.startswith("/api/"):
                await self._call(scope, receive, send, owner)
            else:
                await _send_file(send, scope)
        except HoldfastError as error:
            await _send_json(send, _status(error), _error_body(error))
        except Exception:
            logger.exception("a request to the web server failed")
            body = ErrorBody(code="internal", text="the request failed", hint="see logs/holdfast.log")
            await _send_json(send, 500, body)

    async def _key_owner(self, scope: Scope) -> Device | None:
        """Who sends a valid API key; None without one. Raises StoreUnavailable."""
        token = _token(scope)
        if self._context.keys is None or not token.startswith(API_KEY_PREFIX.encode()):
            return None
        key = await check_api_key(self._context.keys, token.decode("latin-1"))
        if key is None:
            return None
        now = self._context.clock.now_ms()
        return Device(
            id=f"key-{key.id}",
            name=key.principal,
            right=key.right,
            entered_ms=now,
            seen_ms=now,
            principal=named_person(key.principal),
        )

    async def _call(self, scope: Scope, receive: Receive, send: Send, owner: Device | None) -> None:
        if scope["path"] == ENTER:
            await self._enter(scope, receive, send)
            return
        for route, pattern in self._table:
            match = pattern.fullmatch(scope["path"])
            if match is None or route.method != scope["method"]:
                continue
            device = self._device(scope, route.right, owner)
            body = await _read_body(receive, route.takes) if route.takes is not None else None
            request = WebRequest(
                context=self._context, device=device, path=match.groupdict(), query=_query(scope), body=body
            )
            answer = await route.answer(request)
            if isinstance(answer, str):
                await _send(send, 200, answer.encode(), "text/csv; charset=utf-8")
            else:
                await _send_json(send, 200, answer)
            return
        raise SessionNotFound(f"there is no {scope['method']} {scope['path']}")

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            raise InvalidInput("send the code with POST")
        # Behind a TLS proxy, which may run as another user, the code alone counts.
        if not self._is_proxied(scope) and not is_own_peer(scope.get("client"), self._port):
            raise NotAllowed("another user of this machine cannot enter", hint="run your own: holdfast web")
        body = await _read_body(receive, EnterBody)
        assert isinstance(body, EnterBody)
        token, device = self._context.devices.enter(body.code, name=body.name or _browser_name(scope))
        await _send_json(send, 200, Entered(token=token, device=device))

    def _is_proxied(self, scope: Scope) -> bool:
        """Whether the request came to the name of the TLS proxy. The guard has checked that the name is ours."""
        hosts = {origin.removeprefix("https://") for origin in self._origins if origin.startswith("https://")}
        return any(value.decode("latin-1") in hosts for name, value in scope["headers"] if name == b"host")

    async def _stream(self, scope: Scope, receive: Receive, send: Send, owner: Device | None) -> None:
        self._device(scope, "look", owner)
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"last-event-id"]
        after = int(given[0]) if given and given[0].isdecimal() and len(given[0]) < 19 else None
        await send(_start(200, "text/event-stream", (b"x-accel-buffering", b"no")))
        frames = follow(self._context.feed.frames(after), self._context.closed)
        await _send_until_gone(self._while_allowed(frames, scope), receive, send)

    async def _while_allowed(self, frames: AsyncIterator[bytes], scope: Scope) -> AsyncIterator[bytes]:
        """The frames until the device was ended or the key revoked; every stream has a frame once in a while."""
        clock = self._context.clock
        checked_ms = clock.now_ms()
        async for frame in frames:
            if clock.now_ms() - checked_ms >= RECHECK_MS:
                checked_ms = clock.now_ms()
                if self._context.devices.device_of(_token(scope)) is None and not await self._key_owner(
                    scope
                ):
                    return
            yield frame

    def _device(self, scope: Scope, right: Right, owner: Device | None) -> Device:
        device = owner or self._context.devices.device_of(_token(scope))
        if device is None or not has_right(device, right):
            what, hint = ("device", "use the browser that `holdfast web` opened")
            if owner is not None:
                what, hint = (
                    "key",
                    f"make one with that right: holdfast store keys URL --add NAME --right {right}",
                )
            raise NotAllowed(f"this {what} may not do this: it needs the right {right!r}", hint=hint)
        return device


def _token(scope: Scope) -> bytes:
    return bearer([value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"])


class NotAllowed(HoldfastError):
    """A device lacks a right."""

    code = "not-allowed"


async def _send_until_gone(frames: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send frames until they end or the browser is gone."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.ensure_future(gone())
    try:
        async for frame in frames:
            if leaving.done():
                return
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except OSError:
        pass  # the browser is gone
    finally:
        leaving.cancel()


def _browser_name(scope: Scope) -> str:
    """What the browser says of itself, in a few words."""
    given = b" ".join(value for name, value in scope["headers"] if name == b"user-agent").decode("latin-1")
    browser = next((name for word, name in _BROWSERS.items() if word in given), "a browser")
    system = next((name for word, name in _SYSTEMS.items() if word in given), "")
    return f"{browser} on {system}" if system else browser


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _read_body(receive: Receive, kind: type) -> object:
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidInput("the request ended early")
        content += message.get("body", b"")
        if len(content) > MAX_BODY_BYTES:
            raise _TooLarge("the request is too large", hint="send at most one megabyte")
        if not message.get("more_body"):
            break
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidInput(f"the request is not valid: {problem}") from None


def _query(scope: Scope) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=20))


async def _send_file(send: Send, scope: Scope) -> None:
    """A file of the page. They hold nothing secret, so they travel compressed; answers of the API do not."""
    method, path = scope["method"], scope["path"]
    found = _STATIC.fullmatch(path)
    name = "index.html" if path == "/" else found[1] if found is not None else ""
    file = resources.files("holdfast.web") / "static" / name
    if method not in ("GET", "HEAD") or not name or not file.is_file():
        raise SessionNotFound(f"there is no {path}")
    content = file.read_bytes() if method == "GET" else b""
    more = [(b"vary", b"accept-encoding")]
    if content and _takes_gzip(scope):
        content = _compressed(content)
        more.append((b"content-encoding", b"gzip"))
    await _send(send, 200, content, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", *more)


@lru_cache(maxsize=64)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _takes_gzip(scope: Scope) -> bool:
    given = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    # With a weight, it may be refused; browsers send none.
    return any(each.strip().lower() == b"gzip" for each in given.split(b","))


def _status(error: HoldfastError) -> int:
    match error:
        case SessionNotFound():
            return 404
        case NotAllowed():
            return 403
        case _TooLarge():
            return 413
        case _ if isinstance(error, _CONFLICTS):
            return 409
        case _:
            return 400


def _error_body(error: HoldfastError) -> ErrorBody:
    return ErrorBody(code=error.code, text=str(error), hint=error.hint or "")


async def _send_json(send: Send, status: int, answer: object) -> None:
    await _send(send, status, encode(answer), "application/json")


async def _send(send: Send, status: int, content: bytes, kind: str, *more: tuple[bytes, bytes]) -> None:
    await send(_start(status, kind, (b"content-length", str(len(content)).encode()), *more))
    await send({"type": "http.response.body", "body": content})


def _start(status: int, kind: str, *more: tuple[bytes, bytes]) -> MutableMapping[str, Any]:
    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [*headers, (b"content-type", kind.encode()), *more],
    }
