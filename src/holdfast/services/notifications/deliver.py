"""Delivery of a notification to one target. Each function sends it once; `sender` repeats what failed."""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, assert_never
from urllib.parse import urlsplit

from holdfast.core import Value, encode
from holdfast.core.errors import InvalidConfig
from holdfast.models import key_variables, keyring_secret
from holdfast.services.notifications.notification import Notification
from holdfast.session import (
    NotifyApprise,
    NotifyCommand,
    NotifyDesktop,
    NotifyEmail,
    NotifyNtfy,
    NotifyTarget,
    NotifyWebhook,
)

if TYPE_CHECKING:
    import httpx2

SIGNATURE = "Holdfast-Signature"
DELIVERY_SECONDS = 15.0
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NTFY_PRIORITY = {"waits": "4", "failed": "4", "budget": "3", "finished": "3"}


class DeliveryFailed(Exception):
    """A target did not take a notification."""

    def __init__(self, reason: str, *, is_final: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """Whether a repetition would fail in the same way."""
        self.retry_after = retry_after


class _Payload(Value, omit_defaults=False):
    """The JSON of a webhook and of a command's input."""

    id: str
    topic: str
    session: str
    title: str
    text: str
    detail: str
    link: str
    sent_ms: int


async def deliver(
    target: NotifyTarget, notification: Notification, environ: Mapping[str, str], *, now_ms: int
) -> None:
    """Send a notification once. Raises DeliveryFailed."""
    detail = notification.detail if target.private else ""
    body = encode(
        _Payload(
            id=notification.id,
            topic=notification.topic,
            session=notification.session,
            title=notification.title,
            text=notification.text,
            detail=detail,
            link=notification.link,
            sent_ms=now_ms,
        )
    )
    text = "\n\n".join(part for part in (notification.text, detail, notification.link) if part)
    try:
        async with asyncio.timeout(DELIVERY_SECONDS):
            match target:
                case NotifyWebhook():
                    await _post(
                        resolve_secret(target.url, environ),
                        body,
                        _webhook_headers(target, body, notification, environ, now_ms),
                    )
                case NotifyNtfy():
                    text = "\n\n".join(part for part in (notification.text, detail) if part)
                    await _post(
                        resolve_secret(target.url, environ),
                        text.encode(),
                        _ntfy_headers(target, notification, environ),
                    )
                case NotifyCommand():
                    await _run((*target.command, notification.title, text), body, environ)
                case NotifyDesktop():
                    await _run(_desktop_command(notification.title, text), b"", environ)
                case NotifyEmail():
                    await asyncio.to_thread(_send_email, target, notification, text, environ)
                case NotifyApprise():
                    await asyncio.to_thread(_send_apprise, target, notification, text, environ)
                case _:
                    assert_never(target)
    except TimeoutError:
        raise DeliveryFailed(f"no answer in {DELIVERY_SECONDS:g} s") from None


def resolve_secret(text: str, environ: Mapping[str, str]) -> str:
    """A setting with its `${VARIABLE}`s, or the entry `keyring:NAME` of the keyring. Raises DeliveryFailed."""
    if text.startswith("keyring:"):
        stored = keyring_secret(text.removeprefix("keyring:"))
        if stored is None:
            raise DeliveryFailed(f"the keyring has no entry {text!r}", is_final=True)
        return stored
    for name in _VARIABLE.findall(text):
        if not environ.get(name):
            raise DeliveryFailed(f"${name} is not set", is_final=True)
    return _VARIABLE.sub(lambda found: environ[found.group(1)], text)


def check_target(name: str, target: NotifyTarget) -> None:
    """Refuse a target that can never work or would send in the clear. Raises InvalidConfig."""
    where = f"notify.targets.{name}"
    match target:
        case NotifyWebhook() | NotifyNtfy():
            is_secret = "${" in target.url or target.url.startswith("keyring:")
            if not is_secret and not is_safe_address(target.url):
                raise InvalidConfig(f"{where}: url must be https, or an address of this machine")
        case NotifyCommand():
            if not target.command:
                raise InvalidConfig(f"{where}: command is empty")
        case NotifyEmail():
            host, _, port = target.server.rpartition(":")
            if not host or not port.isdecimal():
                raise InvalidConfig(f"{where}: server must be HOST:PORT")
            if target.security == "none" and not _is_local(host.strip("[]")):
                raise InvalidConfig(
                    f'{where}: security = "none" would send the password in the clear',
                    hint='use "starttls" or "tls"',
                )
        case NotifyDesktop() | NotifyApprise():
            pass
        case _:
            assert_never(target)


def is_safe_address(url: str) -> bool:
    """Whether an address is https, or plain http on this machine."""
    address = urlsplit(url)
    is_https = address.scheme == "https" and bool(address.hostname)
    return is_https or (address.scheme == "http" and _is_local(address.hostname or ""))


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _webhook_headers(
    target: NotifyWebhook, body: bytes, notification: Notification, environ: Mapping[str, str], now_ms: int
) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Idempotency-Key": notification.id}
    if target.secret:
        key = resolve_secret(target.secret, environ).encode()
        headers[SIGNATURE] = sign(body, key, now_ms // 1000)
    return headers


def sign(body: bytes, key: bytes, seconds: int) -> str:
    """The signature of a webhook: the time, and an HMAC of the time and the body."""
    digest = hmac.new(key, b"%d." % seconds + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def _ntfy_headers(
    target: NotifyNtfy, notification: Notification, environ: Mapping[str, str]
) -> dict[str, str]:
    headers = {"Title": notification.title, "Priority": _NTFY_PRIORITY[notification.topic]}
    if notification.link:
        headers["Click"] = notification.link
    if target.token:
        headers["Authorization"] = f"Bearer {resolve_secret(target.token, environ)}"
    return headers


async def _post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    import httpx2

    try:
        async with (
            httpx2.AsyncClient(timeout=DELIVERY_SECONDS, follow_redirects=False) as client,
            # The body of the answer is not read: it says nothing that we need, and could be endless.
            client.stream("POST", url, content=body, headers=dict(headers)) as answer,
        ):
            _check_answer(answer)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DeliveryFailed(type(error).__name__) from error


def _check_answer(answer: "httpx2.Response") -> None:
    if answer.is_success:
        return
    retry_after = answer.headers.get("Retry-After", "")
    raise DeliveryFailed(
        f"the server answered {answer.status_code}",
        is_final=answer.status_code < 500 and answer.status_code not in (408, 425, 429),
        retry_after=float(retry_after) if retry_after.isdecimal() else 0.0,
    )


async def _run(command: tuple[str, ...], given: bytes, environ: Mapping[str, str]) -> None:
    keys = key_variables()
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
            env={name: value for name, value in environ.items() if name not in keys},
        )
    except OSError as error:
        raise DeliveryFailed(f"{command[0]}: {error.strerror}", is_final=True) from error
    try:
        await process.communicate(given)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise DeliveryFailed(f"{os.path.basename(command[0])} ended with {process.returncode}")


def _desktop_command(title: str, text: str) -> tuple[str, ...]:
    """The program of this desktop that shows a notification. Raises DeliveryFailed."""
    if sys.platform == "darwin":
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return ("osascript", "-e", script, title, text)
    if shutil.which("notify-send"):
        return ("notify-send", "--app-name=Holdfast", "--", title, text)
    if shutil.which("gdbus"):
        method = "org.freedesktop.Notifications.Notify"
        place = ("--session", "--dest", "org.freedesktop.Notifications", "--object-path")
        arguments = ("Holdfast", "0", "", title, text, "[]", "{}", "-1")
        return ("gdbus", "call", *place, "/org/freedesktop/Notifications", "--method", method, *arguments)
    raise DeliveryFailed("no notify-send and no gdbus on this machine", is_final=True)


def _send_email(
    target: NotifyEmail, notification: Notification, text: str, environ: Mapping[str, str]
) -> None:
    import smtplib
    import ssl
    from email.message import EmailMessage

    message = EmailMessage()
    message["Subject"] = notification.title
    message["From"] = target.sender
    message["To"] = target.recipient
    message["Message-ID"] = f"<{notification.id}@holdfast.invalid>"
    message.set_content(text)
    host, _, port = target.server.rpartition(":")
    host = host.strip("[]")
    try:
        connection: smtplib.SMTP
        if target.security == "tls":
            connection = smtplib.SMTP_SSL(
                host, int(port), timeout=DELIVERY_SECONDS, context=ssl.create_default_context()
            )
        else:
            connection = smtplib.SMTP(host, int(port), timeout=DELIVERY_SECONDS)
        with connection:
            if target.security == "starttls":
                connection.starttls(context=ssl.create_default_context())
            if target.user:
                connection.login(target.user, resolve_secret(target.password, environ))
            connection.send_message(message)
    except smtplib.SMTPResponseException as error:
        raise DeliveryFailed(
            f"the mail server answered {error.smtp_code}", is_final=error.smtp_code >= 500
        ) from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryFailed(type(error).__name__) from error


def _send_apprise(
    target: NotifyApprise, notification: Notification, text: str, environ: Mapping[str, str]
) -> None:
    import importlib

    try:
        apprise: Any = importlib.import_module("apprise")  # Any: an optional library without types
    except ImportError as error:
        raise DeliveryFailed("the extra 'notify' is not installed (apprise)", is_final=True) from error
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it logs addresses, which hold secrets
    service = apprise.Apprise()
    if not service.add(resolve_secret(target.url, environ)):
        raise DeliveryFailed("Apprise does not know this url", is_final=True)
    if not service.notify(body=text, title=notification.title):
        raise DeliveryFailed("Apprise could not send it")
