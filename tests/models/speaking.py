"""Ways to open each kind of model on the same script."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from tests.support.provider_stub import StubServer

from holdfast.core import FakeClock
from holdfast.models import Model, ModelSettings, Reply, RetryPolicy, create_model

KEY = "stub-key"
ENVIRON = {
    "ANTHROPIC_API_KEY": KEY,
    "OPENAI_API_KEY": KEY,
    "GEMINI_API_KEY": KEY,
    "OLLAMA_API_KEY": KEY,
    "HOLDFAST_SERVER_KEY": KEY,
}
SPECS = {
    "anthropic": "anthropic:claude-sonnet-5-5",
    "openai": "openai:gpt-6.1-terra",
    "openai-chat": "openai-chat:gpt-6.1-terra",
    "google": "google:gemini-3.8-flash",
    "ollama": "ollama:qwen3",
    "server": "server:http://127.0.0.1:1/v1#any",
}
PROVIDERS = tuple(SPECS)

Speak = Callable[[Sequence[Reply | str]], Awaitable[Model]]
"""Opens a model that says these replies."""
Serve = Callable[..., Awaitable[StubServer]]
"""Starts a stub with a script."""


class StillClock:
    """Waiting that takes no time: each wait is noted and passes at once, the alarm of the whole never rings."""

    def __init__(self, total_seconds: float) -> None:
        self.clock = FakeClock()
        self.waits: list[float] = []
        self._total_seconds = total_seconds

    async def sleep(self, seconds: float) -> None:
        if seconds == self._total_seconds:
            await asyncio.Event().wait()
        self.waits.append(seconds)
        self.clock.advance(seconds)


def patient(settings: ModelSettings, still: StillClock) -> RetryPolicy:
    """The patience of the settings on a clock that stands still."""
    return RetryPolicy(
        settings.total_seconds, settings.attempts, sleep=still.sleep, clock=still.clock, jitter=lambda: 1.0
    )


def open_at(
    kind: str,
    url: str,
    *,
    settings: ModelSettings | None = None,
    still: StillClock | None = None,
    key: str = KEY,
) -> Model:
    """A model of this kind that talks to the stub at this address."""
    base_url = url if kind in ("anthropic", "google") else f"{url}/v1"
    merged = ModelSettings(base_url=base_url) if settings is None else settings_at(settings, base_url)
    return create_model(
        SPECS[kind],
        settings=merged,
        environ=dict.fromkeys(ENVIRON, key),
        patience=patient(merged, still or StillClock(merged.total_seconds)),
    )


def settings_at(settings: ModelSettings, base_url: str) -> ModelSettings:
    return msgspec.structs.replace(settings, base_url=base_url)
