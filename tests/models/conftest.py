"""Fixtures of the tests of models."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest
from tests.models.speaking import KEY, PROVIDERS, Serve, Speak, open_at
from tests.support.provider_stub import Fault, StubServer

from holdfast.models import Model, Reply, ScriptedModel


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def serve(stack: AsyncExitStack) -> Serve:
    """Starts a stub with a script."""

    async def start(replies: Sequence[Reply | str | Fault], *, packet: int = 0) -> StubServer:
        return await stack.enter_async_context(StubServer(replies, key=KEY, packet=packet))

    return start


@pytest.fixture(params=["scripted", *PROVIDERS])
def kind(request: pytest.FixtureRequest) -> str:
    """Every kind of model there is."""
    return str(request.param)


@pytest.fixture
def speak(kind: str, serve: Serve, stack: AsyncExitStack) -> Speak:
    async def open_speaking(replies: Sequence[Reply | str]) -> Model:
        if kind == "scripted":
            return ScriptedModel(replies)
        stub = await serve(replies)
        model = open_at(kind, stub.url)
        stack.push_async_callback(model.close)
        return model

    return open_speaking
