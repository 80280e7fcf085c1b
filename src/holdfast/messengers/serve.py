"""Serving messengers: one bridge for each that is configured, in one process."""

import asyncio
from collections.abc import Mapping
from typing import assert_never

from holdfast.app import Runtime
from holdfast.core import SystemClock
from holdfast.core.errors import InvalidConfig
from holdfast.messengers.bridge import Bridge
from holdfast.messengers.contract import Messenger
from holdfast.messengers.slack import Slack
from holdfast.messengers.telegram import Telegram
from holdfast.services import DeliveryFailed, is_safe_address, resolve_secret
from holdfast.session import ConfiguredMessenger, SlackSettings, TelegramSettings


def create_messenger(name: str, settings: ConfiguredMessenger, environ: Mapping[str, str]) -> Messenger:
    """The client of a chat service. Raises InvalidConfig."""
    where = f"messengers.{name}"
    if not settings.members:
        raise InvalidConfig(f"{where}: members is empty, so nobody could talk to it")
    if not is_safe_address(settings.base_url):
        raise InvalidConfig(f"{where}: base_url must be https, or on this machine")
    try:
        match settings:
            case TelegramSettings():
                return Telegram(resolve_secret(settings.token, environ), base_url=settings.base_url)
            case SlackSettings():
                return Slack(
                    resolve_secret(settings.bot_token, environ),
                    resolve_secret(settings.app_token, environ),
                    base_url=settings.base_url,
                )
            case _:
                assert_never(settings)
    except DeliveryFailed as error:
        raise InvalidConfig(f"{where}: {error}") from error


async def serve_messengers(
    messengers: Mapping[str, ConfiguredMessenger], *, runtime: Runtime, environ: Mapping[str, str]
) -> None:
    """Serve until cancelled. Raises InvalidConfig before anything is sent."""
    bridges = [
        Bridge(
            name,
            create_messenger(name, settings, environ),
            settings,
            runtime=runtime,
            clock=SystemClock(),
        )
        for name, settings in messengers.items()
    ]
    await asyncio.gather(*(bridge.run() for bridge in bridges))
