"""Extras: the resources, prompts and completions of a server as operations, so that using one is an ordinary call.

A server's tool with one of these names is refused.
"""

from holdfast.core import ArgumentRoles, Tool

READ_RESOURCE = "resources.read"
SUBSCRIBE = "resources.subscribe"
GET_PROMPT = "prompts.get"
COMPLETE = "completion.complete"
EXTRAS = frozenset([READ_RESOURCE, SUBSCRIBE, GET_PROMPT, COMPLETE])

_NOTHING = ArgumentRoles(default=("none",))
# A URI may have the server's own scheme or any other, so it is judged like a URL to fetch.
_ADDRESS = ArgumentRoles(default=("fetch-url",))
_OPTIONAL = frozenset(["arguments", "prompt", "template", "context"])
_OBJECTS = frozenset(["arguments", "context"])


def extra_tools(server: str, offers: tuple[str, ...]) -> tuple[Tool, ...]:
    """The operations for what a server offers in addition to tools."""
    tools = []
    if "resources" in offers:
        tools.append(_tool(f"{server}.{READ_RESOURCE}", "Read a resource.", uri=_ADDRESS))
    if "subscriptions" in offers:
        tools.append(_tool(f"{server}.{SUBSCRIBE}", "Get notified when a resource changes.", uri=_ADDRESS))
    if "prompts" in offers:
        tools.append(_tool(f"{server}.{GET_PROMPT}", "Get a prompt.", name=_NOTHING, arguments=_NOTHING))
    if "completions" in offers:
        parts = ("prompt", "template", "argument", "value", "context")
        roles = dict.fromkeys(parts, _NOTHING)
        tools.append(
            _tool(f"{server}.{COMPLETE}", "Complete an argument of a prompt or URI template.", **roles)
        )
    return tuple(tools)


def _tool(operation: str, description: str, /, **roles: ArgumentRoles) -> Tool:
    return Tool(
        name=operation,
        description=description,
        parameters={
            "type": "object",
            "properties": {each: {"type": "object" if each in _OBJECTS else "string"} for each in roles},
            "required": [each for each in roles if each not in _OPTIONAL],
        },
        roles=roles,
    )
