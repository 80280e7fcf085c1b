"""Argument roles of tools: those of the built-in operations, and those that a policy assigns to other tools.

`KNOWN_TOOLS` lets a policy be checked without a world.
"""

import msgspec

from holdfast.core import ArgumentRoles, Json, JsonObject, Role, Tool
from holdfast.policy.contract import Policy
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.tiers import TieredPolicy

_PLAIN = ArgumentRoles(default=("none",))


def annotate(tool: Tool, policy: Policy) -> Tool:
    """The tool with the roles that the policy assigns. A tool that already has roles keeps them, except that plain data gets a role:
    a suggestion that nobody checked must not switch off a rule about a payee.

    Of several tiers only the highest one that judges by roles counts, even if it assigns none. Otherwise a project's policy
    could declare the path of a write to be plain data.
    """
    known = _known(tool.name, policy)
    if known is None or known.roles is None:
        return tool
    if tool.roles is None:
        return msgspec.structs.replace(tool, roles=known.roles)
    plain = {name for name, each in tool.roles.items() if each == _PLAIN}
    assigned = {name: roles for name, roles in known.roles.items() if name in plain}
    return msgspec.structs.replace(tool, roles=tool.roles | assigned) if assigned else tool


def _known(name: str, policy: Policy) -> Tool | None:
    if isinstance(policy, RulePolicy):
        return policy.document.tools.get(name)
    if isinstance(policy, TieredPolicy):
        judging = (tier for tier in policy.policies if isinstance(tier, RulePolicy | TieredPolicy))
        return _known(name, highest) if (highest := next(judging, None)) is not None else None
    return None


def _tool(name: str, required: str = "", optional: str = "", **roles: tuple[Role, ...]) -> Tool:
    """A tool from words: `path` is a string, `limit#` an integer, `recursive?` a boolean."""
    properties: JsonObject = {}
    for word in (required + " " + optional).split():
        kind = {"#": "integer", "?": "boolean"}.get(word[-1], "string")
        properties[word.rstrip("#?")] = {"type": kind}
    needed: list[Json] = [word.rstrip("#?") for word in required.split()]
    return Tool(
        name=name,
        parameters={"type": "object", "properties": properties, "required": needed},
        roles={argument: ArgumentRoles(default=roles.get(argument, ("none",))) for argument in properties},
    )


def _completion(name: str, required: str, optional: str = "") -> Tool:
    tool = _tool(name, required, f"{optional} max_tokens#")
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    properties["max_tokens"] = {"type": "integer", "minimum": 1, "default": 1024}
    return tool


def _command(name: str, optional: str, more: JsonObject | None = None) -> Tool:
    tool = _tool(name, "", f"script cwd tty? {optional}", script=("command",), stdin=("content",))
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    assert tool.roles is not None
    added: JsonObject = {
        "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "hosts": {"type": "array", "items": {"type": "string"}},
        **(more or {}),
    }
    roles = {argument: ArgumentRoles(default=("none",)) for argument in added}
    roles["argv"] = ArgumentRoles(default=("command",))
    return msgspec.structs.replace(
        tool, parameters=tool.parameters | {"properties": properties | added}, roles=tool.roles | roles
    )


_SESSION_VERBS = (
    "id", "turn_number", "status", "read_only", "proposal_mode", "audit_log", "operations_count", "proposals",
    "commit_proposals", "rollback_proposals",
)  # fmt: skip

KNOWN_TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _tool("world.read", "path", "encoding offset# length#", path=("read-path",)),
        _tool("world.list", "", "pattern"),
        _tool("world.entries", "path", path=("read-path",)),
        _tool("world.exists", "path", path=("read-path",)),
        _tool("world.stat", "path", path=("read-path",)),
        _tool("world.search", "query", "pattern limit#"),
        _tool("world.fingerprint", "", "path", path=("read-path",)),
        _tool("world.write", "path content", "encoding", path=("write-path",), content=("content",)),
        _tool("world.append", "path content", "encoding", path=("write-path",), content=("content",)),
        _tool("world.make_folder", "path", path=("write-path",)),
        _tool("world.delete", "path", "recursive?", path=("delete-path",)),
        _tool(
            "world.move",
            "source destination",
            source=("delete-path", "read-path"),
            destination=("write-path",),
        ),
        _tool("world.proposals"),
        Tool(
            name="world.withdraw",
            parameters={"properties": {"paths": {"type": "array", "items": {"type": "string"}}}},
            roles={"paths": ArgumentRoles(default=("none",))},
        ),
        _completion("llm.complete", "prompt", "system"),
        _completion("llm.intent", "intent"),
        _tool("net.fetch", "url", url=("fetch-url",)),
        _tool("net.connect", "host", "port#", host=("proxy-domain",)),
        _command("shell.run", "stdin command", {"timeout_s": {"type": "number"}}),
        _command("shell.start", "name", {"ready": {"type": "object"}}),
        _tool("shell.read", "process", "wait_s# after#"),
        _tool("shell.write", "process", "input signal", input=("content",)),
        _tool("shell.stop", "process"),
        _tool("shell.python", "code"),
        _tool("git.propose", "", "folder source"),
        _tool("git.push", "url branch", "folder source", url=("git-remote-url",), branch=("branch-name",)),
        *(_tool(f"session.{verb}") for verb in _SESSION_VERBS),
        _tool("session.budget_remaining", "dimension"),
        _tool("session.allowed", "operation"),
        *(_tool(name) for name in ("eval", "subeval", "memo", "fixpoint", "assert", "fact?", "facts")),
        *(_tool(name, "", "command") for name in ("shell", "world.run", "world.exec")),
    )
}
"""By operation. The roles that a toolset declares take precedence."""

BUILT_IN_GROUPS = frozenset(name.partition(".")[0] for name in KNOWN_TOOLS) - {"git"}
"""Groups whose tools are all known. An MCP server is often called `git` as well."""
