"""Fixtures for the tests of models."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest
from tests.models.create import KEY, SPECS, CreateScripted, StartStub, create_at
from tests.support.provider_stub import Fault, StubServer

from holdfast.models import Model, Reply, ScriptedModel


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def start_stub(stack: AsyncExitStack) -> StartStub:
    """Starts a stub with a script."""

    async def start(replies: Sequence[Reply | str | Fault], *, packet: int = 0) -> StubServer:
        return await stack.enter_async_context(StubServer(replies, key=KEY, packet=packet))

    return start


@pytest.fixture(params=["scripted", *SPECS])
def kind(request: pytest.FixtureRequest) -> str:
    """Every kind of model that needs no engine."""
    return str(request.param)


@pytest.fixture
def create_scripted(kind: str, start_stub: StartStub, stack: AsyncExitStack) -> CreateScripted:
    async def create(replies: Sequence[Reply | str]) -> Model:
        if kind == "scripted":
            return ScriptedModel(replies)
        stub = await start_stub(replies)
        model = create_at(kind, stub.url)
        stack.push_async_callback(model.close)
        return model

    return create
