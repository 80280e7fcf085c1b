"""Extras: resources and prompts of a server, as operations of their own, so that reading one is a call like any other.

A tool of a server that has one of these names is refused.
"""

from holdfast.core import ArgumentRoles, Tool

READ_RESOURCE = "resources.read"
GET_PROMPT = "prompts.get"
EXTRAS = frozenset([READ_RESOURCE, GET_PROMPT])


def extra_tools(server: str, offers: tuple[str, ...]) -> tuple[Tool, ...]:
    """The operations for what a server has beside tools."""
    tools = []
    if "resources" in offers:
        # The address is the server's own scheme or anybody's: judged as strictly as one to be fetched.
        tools.append(
            _tool(f"{server}.{READ_RESOURCE}", "Read a resource.", uri=ArgumentRoles(default=("fetch-url",)))
        )
    if "prompts" in offers:
        nothing = ArgumentRoles(default=("none",))
        tools.append(_tool(f"{server}.{GET_PROMPT}", "Get a prompt.", name=nothing, arguments=nothing))
    return tuple(tools)


def _tool(operation: str, description: str, /, **roles: ArgumentRoles) -> Tool:
    kinds = {"arguments": "object"}
    return Tool(
        name=operation,
        description=description,
        parameters={
            "type": "object",
            "properties": {argument: {"type": kinds.get(argument, "string")} for argument in roles},
            "required": [argument for argument in roles if argument != "arguments"],
        },
        roles=roles,
    )
