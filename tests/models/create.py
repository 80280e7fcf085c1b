"""Creates each kind of model against the provider stub, with a clock that never waits."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from tests.support.provider_stub import StubServer

from holdfast.core import FakeClock
from holdfast.models import Model, ModelSettings, Reply, RetryPolicy, create_model
from holdfast.models.providers import PROVIDERS

KEY = "stub-key"
SPECS = {
    "anthropic": "anthropic:claude-sonnet-5-5",
    "openai": "openai:gpt-6.1-terra",
    "openai-chat": "openai-chat:gpt-6.1-terra",
    "google": "google:gemini-3.8-flash",
    "ollama": "ollama:qwen3",
    "server": "server:http://127.0.0.1:1/v1#any",
}
"""A spec for every provider; test_model_contract.py checks that none is missing."""
WIRE_FORMATS = ("anthropic", "openai", "openai-chat", "google")
"""One provider for each wire format. Ollama and other servers use the format and the library of `openai-chat`."""

CreateScripted = Callable[[Sequence[Reply | str]], Awaitable[Model]]
"""Creates a model that makes these replies."""
StartStub = Callable[..., Awaitable[StubServer]]
"""Starts a stub with a script."""


class InstantClock:
    """Every wait is recorded and ends at once. The wait for the time limit itself never ends."""

    def __init__(self, timeout_seconds: float) -> None:
        self.clock = FakeClock()
        self.waits: list[float] = []
        self._timeout_seconds = timeout_seconds

    async def sleep(self, seconds: float) -> None:
        if seconds == self._timeout_seconds:
            await asyncio.Event().wait()
        self.waits.append(seconds)
        self.clock.advance(seconds)


def create_at(
    kind: str,
    url: str,
    *,
    settings: ModelSettings | None = None,
    clock: InstantClock | None = None,
    key: str = KEY,
) -> Model:
    """A model of this kind that sends its requests to the stub at this address."""
    base_url = url if kind in ("anthropic", "google") else f"{url}/v1"
    settings = msgspec.structs.replace(settings or ModelSettings(), base_url=base_url)
    clock = clock or InstantClock(settings.timeout_seconds)
    return create_model(
        SPECS[kind],
        settings=settings,
        environ={name: key for provider in PROVIDERS.values() for name in provider.key_variables},
        retry_policy=RetryPolicy(
            settings.timeout_seconds,
            settings.max_attempts,
            sleep=clock.sleep,
            clock=clock.clock,
            jitter=lambda: 1.0,
        ),
    )
