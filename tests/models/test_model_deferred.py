"""A provider's library loads beside the prompt: once, in a thread, and whatever happens to the first request."""

import asyncio
import subprocess
import sys

import pytest
from tests.models.create import StartStub, create_at

from holdfast.core import UserMessage
from holdfast.models import Prompt, preload
from holdfast.models.deferred_model import DeferredModel
from holdfast.models.scripted import ScriptedModel

HELLO = Prompt(system="", messages=(UserMessage(text="hello"),))
PROGRAM = """
import asyncio, sys
from holdfast.models import create_model, preload

async def main():
    model = create_model("openai:gpt-6.1-terra", environ={"OPENAI_API_KEY": "a-key-for-tests"})
    assert model.name == "openai:gpt-6.1-terra"
    print("before", "openai" in sys.modules, "pydantic_ai" in sys.modules)
    await preload(model)
    print("after", "openai" in sys.modules, "pydantic_ai" in sys.modules)
    from openai.types.responses import ResponseCompletedEvent, ResponseTextDeltaEvent
    print(ResponseCompletedEvent.__pydantic_complete__, ResponseTextDeltaEvent.__pydantic_complete__)
    await model.close()

asyncio.run(main())
"""


STOPPED = """
import asyncio, sys
from holdfast.models import create_model, preload

async def main():
    model = create_model("openai:gpt-6.1-terra", environ={"OPENAI_API_KEY": "a-key-for-tests"})
    loading = asyncio.create_task(preload(model))
    while "pydantic_ai" not in sys.modules:
        await asyncio.sleep(0)
    loading.cancel()
    await asyncio.wait({loading})
    await model.close()
    print("stopped", loading.cancelled(), "openai" in sys.modules)
    again = create_model("openai:gpt-6.1-terra", environ={"OPENAI_API_KEY": "a-key-for-tests"})
    await preload(again)
    print("again", "openai" in sys.modules, [type(each).__name__ for each in sys.meta_path if "holdfast" in type(each).__module__])
    await again.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """What a fresh process printed: loading the library takes two seconds."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_creating_a_model_loads_no_library_and_preloading_does(printed: list[str]) -> None:
    assert printed[:2] == ["before False False", "after True True"]


def test_preloading_leaves_no_types_of_events_to_the_first_reply(printed: list[str]) -> None:
    assert printed[2:] == ["True True"]


async def test_requests_at_once_build_the_model_once() -> None:
    built: list[ScriptedModel] = []

    def build() -> ScriptedModel:
        built.append(ScriptedModel(["one", "two"]))
        return built[-1]

    model = DeferredModel("scripted:x", key=None, context_tokens=lambda: None, build=build)
    await asyncio.gather(preload(model), model.ask(HELLO, lambda _: None), model.ask(HELLO, lambda _: None))
    assert len(built) == 1


async def test_a_request_cancelled_while_the_library_loads_leaves_the_model_usable(
    start_stub: StartStub,
) -> None:
    stub = await start_stub(["here"])
    model = create_at("anthropic", stub.url)
    request = asyncio.create_task(model.ask(HELLO, lambda _: None))
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.wait([request])
    assert (await model.ask(HELLO, lambda _: None)).message.text == "here"
    await model.close()


async def test_closing_a_model_that_was_never_used_builds_nothing() -> None:
    def build() -> ScriptedModel:
        raise AssertionError("built without need")

    await DeferredModel("scripted:x", key=None, context_tokens=lambda: None, build=build).close()


def test_a_cancelled_preload_stops_at_the_next_module_and_can_be_repeated() -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (["stopped True False", "again True []"], "")
