"""Extras: what a server has beside tools, as operations of their own, so that using it is a call like any other.

A tool of a server that has one of these names is refused.
"""

from holdfast.core import ArgumentRoles, Tool

READ_RESOURCE = "resources.read"
SUBSCRIBE = "resources.subscribe"
GET_PROMPT = "prompts.get"
COMPLETE = "completion.complete"
EXTRAS = frozenset([READ_RESOURCE, SUBSCRIBE, GET_PROMPT, COMPLETE])

_NOTHING = ArgumentRoles(default=("none",))
# The address is the server's own scheme or anybody's: judged as strictly as one to be fetched.
_ADDRESS = ArgumentRoles(default=("fetch-url",))
_OPTIONAL = frozenset(["arguments", "prompt", "template", "context"])
_OBJECTS = frozenset(["arguments", "context"])


def extra_tools(server: str, offers: tuple[str, ...]) -> tuple[Tool, ...]:
    """The operations for what a server has beside tools."""
    tools = []
    if "resources" in offers:
        tools.append(_tool(f"{server}.{READ_RESOURCE}", "Read a resource.", uri=_ADDRESS))
    if "subscriptions" in offers:
        tools.append(_tool(f"{server}.{SUBSCRIBE}", "Be told when a resource changes.", uri=_ADDRESS))
    if "prompts" in offers:
        tools.append(_tool(f"{server}.{GET_PROMPT}", "Get a prompt.", name=_NOTHING, arguments=_NOTHING))
    if "completions" in offers:
        parts = ("prompt", "template", "argument", "value", "context")
        roles = dict.fromkeys(parts, _NOTHING)
        tools.append(_tool(f"{server}.{COMPLETE}", "Complete a word of a prompt or address.", **roles))
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
