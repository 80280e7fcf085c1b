"""The list of models that a provider offers, over real HTTP."""

import pytest
from tests.support.provider_stub import StubServer

from holdfast.core.errors import ModelMissing, ModelRefused, ModelUnavailable
from holdfast.models import ModelSettings, list_models

KEYS = {"ANTHROPIC_API_KEY": "stub-key", "OPENAI_API_KEY": "stub-key", "GEMINI_API_KEY": "stub-key"}


@pytest.mark.parametrize(
    ("spec", "version"),
    [("anthropic:x", ""), ("openai:x", "/v1"), ("openai-chat:x", "/v1"), ("google:x", "")],
)
async def test_each_provider_lists_its_models(spec: str, version: str) -> None:
    async with StubServer([]) as server:
        server.models = ("b-model", "a-model")
        settings = ModelSettings(base_url=f"{server.url}{version}")
        provider = spec.partition(":")[0]
        assert await list_models(spec, settings=settings, environ=KEYS) == (
            f"{provider}:a-model",
            f"{provider}:b-model",
        ), "only models that answer, sorted"


async def test_a_server_lists_its_models_with_its_address() -> None:
    async with StubServer([], key="none") as server:
        spec = f"server:{server.url}/v1#x"
        assert await list_models(spec, environ={}) == (f"server:{server.url}/v1#stub-model",)


async def test_a_model_without_a_provider_has_no_list() -> None:
    assert await list_models("scripted:x.json", environ={}) == ()


async def test_a_list_that_does_not_come_is_an_error_with_the_reason() -> None:
    async with StubServer([], key="another-key") as server:
        settings = ModelSettings(base_url=f"{server.url}/v1")
        with pytest.raises(ModelRefused):
            await list_models("openai:x", settings=settings, environ=KEYS)
        with pytest.raises(ModelMissing):
            await list_models("openai:x", settings=settings, environ={})
        with pytest.raises(ModelUnavailable, match="404"):
            await list_models(
                "openai:x", settings=ModelSettings(base_url=f"{server.url}/v1/x?"), environ=KEYS
            )
    with pytest.raises(ModelUnavailable):
        await list_models("openai:x", settings=settings, environ=KEYS)
