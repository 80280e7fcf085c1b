"""The agent loops of other frameworks with the same instant model and one tool: a question, a tool call, an answer."""

import importlib.util
from collections.abc import Awaitable, Callable
from typing import Any

Loop = Callable[[], Awaitable[object]]
"""Runs one turn on top of a history of constant length."""
SAID, ANSWERED = "hello " * 20, "hi " * 20


def peers() -> dict[str, Callable[[int], Loop]]:
    """The installed peers by name: each takes the length of the history and returns its loop."""
    known = {"pydantic-ai": ("pydantic_ai", _pydantic_ai), "openai-agents": ("agents", _openai_agents)}
    return {name: make for name, (module, make) in known.items() if importlib.util.find_spec(module)}


def _pydantic_ai(messages: int) -> Loop:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def instant(given: list[Any], _: AgentInfo) -> ModelResponse:
        last = given[-1]
        if isinstance(last, ModelRequest) and isinstance(last.parts[-1], UserPromptPart):
            return ModelResponse(parts=[ToolCallPart("exists", {"path": "a.txt"})])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(instant))

    @agent.tool_plain
    def exists(path: str) -> bool:
        return False

    history: list[Any] = []
    for _ in range(messages // 2):
        history += [ModelRequest(parts=[UserPromptPart(SAID)]), ModelResponse(parts=[TextPart(ANSWERED)])]
    return lambda: agent.run("go on", message_history=history)


def _openai_agents(messages: int) -> Loop:
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    set_tracing_disabled(True)  # it would send its traces away

    class InstantModel(Model):
        async def get_response(self, *rest: Any, input: Any, **more: Any) -> ModelResponse:
            output: Any
            if input[-1].get("role") == "user":
                output = ResponseFunctionToolCall(
                    arguments='{"path": "a.txt"}',
                    call_id=f"c{len(input)}",
                    name="exists",
                    type="function_call",
                )
            else:
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                output = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def exists(path: str) -> bool:
        """Whether a file exists."""
        return False

    agent = Agent(name="bench", model=InstantModel(), tools=[exists])
    history: list[Any] = []
    for _ in range(messages // 2):
        history += [{"role": "user", "content": SAID}, {"role": "assistant", "content": ANSWERED}]
    history.append({"role": "user", "content": "go on"})
    return lambda: Runner.run(agent, list(history))
