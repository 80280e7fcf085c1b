"""The tools of an ACP agent as the gate sees them: one for each tool kind of the protocol.

Agents name their tools freely. The protocol adds the kind and the files, and that is what a policy can judge: `acp.edit`
with its paths, `acp.execute` with its command. A call whose kind needs files and that names none has invalid arguments.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core import ArgumentRoles, Call, JsonObject, Performed, Role, Tool
from holdfast.core.errors import ToolFailed

GROUP = "acp"
_PATHS: dict[str, tuple[Role, ...]] = {
    "read": ("read-path",),
    "search": ("read-path",),
    "edit": ("read-path", "write-path"),
    "delete": ("delete-path",),
    "move": ("read-path", "write-path", "delete-path"),
}
_OTHERS = ("execute", "fetch", "think", "switch_mode", "other")
_PATH_ARGUMENTS = ("path", "file_path", "abs_path", "absolute_path", "filename", "file", "notebook_path")


class AgentTools:
    """Performs nothing: the agent itself runs what the gate allows."""

    def tools(self) -> tuple[Tool, ...]:
        return tuple(_tool(kind) for kind in (*_PATHS, *_OTHERS))

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                f"{call.operation} is carried out by the agent itself and cannot be staged",
                hint="let the policy allow, deny or escalate it",
            )
        return Performed(result={"performer": GROUP})


class AgentCall:
    """A tool call, assembled from what the agent has reported. `tool` is a ToolCall of the protocol or an update of one."""

    def __init__(self) -> None:
        self.title = ""
        self.kind = "other"
        self.input: Any = None
        self.paths: list[str] = []
        self.is_asked = False
        self.has_run = False

    def update(self, tool: Any) -> None:
        """Merge an update; fields it leaves out keep their value."""
        self.title = tool.title or self.title
        self.kind = tool.kind or self.kind
        if tool.raw_input is not None:
            self.input = tool.raw_input
        reported = [location.path for location in tool.locations or ()]
        reported += [content.path for content in tool.content or () if content.type == "diff"]
        self.paths = [*dict.fromkeys([*self.paths, *reported])]
        self.has_run = self.has_run or tool.status in ("completed", "failed")

    @property
    def verb(self) -> str:
        """The tool's name within its group."""
        return self.kind if self.kind in _PATHS else self.kind if self.kind in _OTHERS else "other"

    def arguments(self, folder: str) -> JsonObject:
        """The arguments for the gate and for a person; `folder` is where a search without paths looks."""
        paths = [*dict.fromkeys([*self.paths, *_paths_in(self.input)])]
        if self.verb == "search" and not paths:
            paths = [folder]
        given: JsonObject = {"title": self.title, "input": msgspec.to_builtins(self.input)}
        url = self.input.get("url") if isinstance(self.input, dict) else None
        if self.verb in _PATHS:
            given["paths"] = list(paths)
        if self.verb == "fetch" and isinstance(url, str):
            given["url"] = url
        return given


def _tool(kind: str) -> Tool:
    silent = ArgumentRoles(default=("none",))
    roles = {"title": silent, "input": silent}
    properties: JsonObject = {"title": {"type": "string"}, "input": {}}
    required: list[str] = []
    if kind in _PATHS:
        roles["paths"] = ArgumentRoles(default=_PATHS[kind])
        properties["paths"] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        required = ["paths"]
    if kind == "fetch":
        roles["url"] = ArgumentRoles(default=("fetch-url",))
        properties["url"] = {"type": "string"}
        required = ["url"]
    return Tool(
        name=f"{GROUP}.{kind}",
        parameters={"type": "object", "properties": properties, "required": list(required)},
        roles=roles,
        is_read_only=kind in ("read", "search", "think"),
    )


def _paths_in(given: Any) -> Iterable[str]:
    """The files that the raw input names in one of the usual fields."""
    if not isinstance(given, dict):
        return ()
    return [given[name] for name in _PATH_ARGUMENTS if isinstance(given.get(name), str) and given[name]]
