"""Each kind of target, over its real wire."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_standin import http_standin
from tests.support.smtp_standin import smtp_standin

from holdfast.core import SystemClock
from holdfast.core.errors import InvalidConfig
from holdfast.services import DeliveryFailed, check_target, deliver, sample_notification
from holdfast.services.notifications.deliver import sign
from holdfast.session import (
    NotifyApprise,
    NotifyCommand,
    NotifyDesktop,
    NotifyEmail,
    NotifyNtfy,
    NotifyTarget,
    NotifyWebhook,
)

SECRET_DETAIL = "This target is private"


async def send(target: NotifyTarget, **environ: str) -> None:
    await deliver(target, sample_notification(), environ, now_ms=SystemClock().now_ms())


async def test_a_webhook_is_signed_and_names_its_notification() -> None:
    async with http_standin() as server:
        await send(NotifyWebhook(url=f"{server.url}/hook", secret="${HOOK_KEY}"), HOOK_KEY="s3cret")
        [request] = server.requests
    assert (request.method, request.path) == ("POST", "/hook")
    assert request.headers["idempotency-key"] == "test"
    signature = request.headers["holdfast-signature"]
    seconds = int(signature.removeprefix("t=").partition(",")[0])
    assert signature == sign(request.body, b"s3cret", seconds)
    assert json.loads(request.body)["title"] == "Holdfast: a test"


async def test_the_guide_shows_how_to_check_a_signature() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "notifications.md").read_text()
    names: dict[str, Any] = {}
    exec(guide.split("```python\n")[1].split("```")[0], names)
    signature = sign(b"body", b"key", 1000)
    assert names["is_genuine"](b"body", signature, b"key", 1001)
    assert not names["is_genuine"](b"other", signature, b"key", 1001)
    assert not names["is_genuine"](b"body", signature, b"key", 9999)


async def test_only_a_private_target_gets_details() -> None:
    async with http_standin() as server:
        await send(NotifyWebhook(url=server.url))
        await send(NotifyWebhook(url=server.url, private=True))
        public, private = [request.body.decode() for request in server.requests]
    assert SECRET_DETAIL not in public
    assert SECRET_DETAIL in private


async def test_ntfy_gets_title_priority_and_token() -> None:
    async with http_standin() as server:
        await send(NotifyNtfy(url=f"{server.url}/topic", token="${TOKEN}"), TOKEN="tk_1")
        [request] = server.requests
    assert request.path == "/topic"
    assert request.headers["title"] == "Holdfast: a test"
    assert request.headers["priority"] == "3"
    assert request.headers["authorization"] == "Bearer tk_1"
    assert request.body.decode() == "This is what a notification of Holdfast looks like."


async def test_a_command_gets_words_and_json_but_no_api_key(tmp_path: Path) -> None:
    script = f'printf "%s|%s|%s|" "$1" "$2" "$ANTHROPIC_API_KEY" > {tmp_path}/out; cat >> {tmp_path}/out'
    target = NotifyCommand(command=("sh", "-c", script, "sh"))
    await send(target, PATH="/usr/bin:/bin", ANTHROPIC_API_KEY="sk-secret")
    title, text, key, given = (tmp_path / "out").read_text().split("|")
    assert (title, key) == ("Holdfast: a test", "")
    assert text == json.loads(given)["text"]


async def test_a_desktop_shows_it_by_the_program_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/out\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    await send(NotifyDesktop(), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (tmp_path / "out").read_text().splitlines()[1:3] == ["--", "Holdfast: a test"]


async def test_an_email_is_sent_with_the_password_of_the_environment() -> None:
    async with smtp_standin() as server:
        target = NotifyEmail(
            server=f"127.0.0.1:{server.port}",
            sender="holdfast@example.com",
            recipient="me@example.com",
            user="me",
            password="${MAIL_PASSWORD}",
            security="none",
        )
        await send(target, MAIL_PASSWORD="pw")
        server.refused = (b"me@example.com",)
        with pytest.raises(DeliveryFailed, match=r"550|Refused"):
            await send(target, MAIL_PASSWORD="pw")
    [mail] = server.mails
    assert b"Subject: Holdfast: a test" in mail
    assert server.logins


@pytest.mark.parametrize(
    ("status", "is_final"), [(400, True), (401, True), (404, True), (429, False), (500, False), (302, True)]
)
async def test_an_answer_other_than_success_is_a_failure(status: int, is_final: bool) -> None:
    async with http_standin() as server:
        server.answers = [(status, {"Retry-After": "7", "Location": "http://127.0.0.1:1/"})]
        with pytest.raises(DeliveryFailed, match=str(status)) as failed:
            await send(NotifyWebhook(url=server.url))
    assert failed.value.is_final is is_final
    assert failed.value.retry_after == 7
    assert len(server.requests) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the modules that Apprise imports
async def test_apprise_delivers_what_a_service_of_its_own_gets() -> None:
    async with http_standin() as server:
        await send(NotifyApprise(url="json://127.0.0.1:${PORT}/hook"), PORT=str(server.port))
        await send(NotifyApprise(url=f"json://127.0.0.1:{server.port}/hook", private=True))
        public, private = [json.loads(request.body) for request in server.requests]
        server.answers = [(500, {})]
        with pytest.raises(DeliveryFailed, match="could not send it"):
            await send(NotifyApprise(url=f"json://127.0.0.1:{server.port}/hook"))
    assert (server.requests[0].method, server.requests[0].path) == ("POST", "/hook")
    assert public["title"] == "Holdfast: a test"
    assert public["message"].startswith("This is what a notification")
    assert SECRET_DETAIL not in public["message"]
    assert SECRET_DETAIL in private["message"]


async def test_apprise_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(DeliveryFailed, match="extra 'notify' is not installed"):
        await send(NotifyApprise(url="json://127.0.0.1"))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (NotifyWebhook(url="http://127.0.0.1:9/", secret="${NOT_SET}"), "NOT_SET is not set"),
        (NotifyWebhook(url="keyring:missing"), "keyring has no entry"),
        (NotifyWebhook(url="http://127.0.0.1:1/"), "ConnectError"),
        (NotifyCommand(command=("/does/not/exist",)), "No such file"),
        (NotifyCommand(command=("false",)), "false ended with 1"),
        (NotifyApprise(url="nosuch://127.0.0.1"), "Apprise does not know this url"),
        (NotifyApprise(url="json://user:s3cret@127.0.0.1:1"), "Apprise could not send it"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_failure_names_its_reason_and_no_secret(target: NotifyTarget, reason: str) -> None:
    with pytest.raises(DeliveryFailed, match=reason):
        await send(target, PATH="/usr/bin:/bin")


@pytest.mark.parametrize(
    "target",
    [
        NotifyWebhook(url="ftp://example.com"),
        NotifyWebhook(url="http://example.com/hook"),
        NotifyNtfy(url="http://ntfy.example.com/topic"),
        NotifyCommand(command=()),
        NotifyEmail(server="mail.example.com", sender="a@b", recipient="c@d"),
        NotifyEmail(server="mail.example.com:25", sender="a@b", recipient="c@d", security="none"),
    ],
)
def test_a_target_that_cannot_work_or_sends_in_the_clear_is_refused(target: NotifyTarget) -> None:
    with pytest.raises(InvalidConfig, match=r"notify\.targets\.it"):
        check_target("it", target)
