"""The definitions of the `world.*` tools: names, parameters and argument roles."""

from holdfast.core import ArgumentRoles, JsonObject, Role, Tool

ENCODINGS = ("utf-8", "base64")

_PATH: JsonObject = {
    "type": "string",
    "description": "relative to the workspace, or under /workspace",
}
_TEXT: JsonObject = {"type": "string"}
_ENCODING: JsonObject = {"type": "string", "enum": list(ENCODINGS), "description": "utf-8 by default"}
_FLAG: JsonObject = {"type": "boolean"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_OFFSET: JsonObject = {"type": "integer", "minimum": 0, "description": "where to start, in bytes"}
_LENGTH: JsonObject = {"type": "integer", "minimum": 0, "description": "how many bytes; the rest by default"}
_PATTERN: JsonObject = {"type": "string", "description": "a glob such as src/**/*.py; all files by default"}
_PATHS: JsonObject = {"type": "array", "items": _PATH}
_STAT: JsonObject = {
    "type": "object",
    "properties": {
        "path": _TEXT,
        "kind": {"enum": ["file", "folder"]},
        "size": _COUNT,
        "modified_ms": _COUNT,
        "mode": _COUNT,
    },
}


def _tool(
    verb: str,
    description: str,
    *,
    needs: JsonObject,
    may: JsonObject | None = None,
    returns: JsonObject,
    roles: dict[str, tuple[Role, ...]],
    is_idempotent: bool = True,
    is_read_only: bool = False,
    is_destructive: bool = False,
) -> Tool:
    properties = needs | (may or {})
    return Tool(
        name=f"world.{verb}",
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(needs),
            "additionalProperties": False,
        },
        returns=returns,
        roles={name: ArgumentRoles(default=roles.get(name, ("none",))) for name in properties},
        is_idempotent=is_idempotent,
        is_read_only=is_read_only,
        is_destructive=is_destructive,
    )


_READ: tuple[Role, ...] = ("read-path",)
_WRITE: tuple[Role, ...] = ("write-path",)
_DELETE: tuple[Role, ...] = ("delete-path",)
_HITS: JsonObject = {
    "type": "array",
    "items": {"type": "object", "properties": {"path": _TEXT, "line": _COUNT, "text": _TEXT}},
}
_PROPOSALS: JsonObject = {
    "type": "array",
    "items": {"type": "object", "properties": {"path": _TEXT, "kind": _TEXT, "diff": _TEXT}},
}

WORLD_TOOLS: tuple[Tool, ...] = (
    _tool(
        "read",
        "The content of a file, or a piece of it. A piece of text has the characters that start in it.",
        needs={"path": _PATH},
        may={"encoding": _ENCODING, "offset": _OFFSET, "length": _LENGTH},
        returns=_TEXT,
        roles={"path": _READ},
        is_read_only=True,
    ),
    _tool(
        "write",
        "Create or replace a file, and create its folders. Returns the number of bytes.",
        needs={"path": _PATH, "content": _TEXT},
        may={"encoding": _ENCODING},
        returns=_COUNT,
        roles={"path": _WRITE, "content": ("content",)},
    ),
    _tool(
        "append",
        "Append to a file. Returns the number of bytes added.",
        needs={"path": _PATH, "content": _TEXT},
        may={"encoding": _ENCODING},
        returns=_COUNT,
        roles={"path": _WRITE, "content": ("content",)},
        is_idempotent=False,
    ),
    _tool(
        "list",
        "The files whose path matches a glob, sorted. Dot files match only if the pattern has the dot.",
        needs={},
        may={"pattern": _PATTERN},
        returns={"type": "array", "items": _TEXT},
        roles={},
        is_read_only=True,
    ),
    _tool(
        "entries",
        "The files and folders directly in a folder.",
        needs={"path": _PATH},
        returns={"type": "array", "items": _STAT},
        roles={"path": _READ},
        is_read_only=True,
    ),
    _tool(
        "exists",
        "Whether a file or folder exists.",
        needs={"path": _PATH},
        returns=_FLAG,
        roles={"path": _READ},
        is_read_only=True,
    ),
    _tool(
        "stat",
        "Kind, size, time and mode of a file or folder.",
        needs={"path": _PATH},
        returns=_STAT,
        roles={"path": _READ},
        is_read_only=True,
    ),
    _tool(
        "make_folder",
        "Create a folder and its parents. An existing folder is not an error.",
        needs={"path": _PATH},
        returns={"type": "null"},
        roles={"path": _WRITE},
    ),
    _tool(
        "delete",
        "Remove a file or an empty folder; with recursive, a folder and everything in it.",
        needs={"path": _PATH},
        may={"recursive": _FLAG},
        returns={"type": "null"},
        roles={"path": _DELETE},
        is_destructive=True,
    ),
    _tool(
        "move",
        "Rename or move a file or folder.",
        needs={"source": _PATH, "destination": _PATH},
        returns={"type": "null"},
        roles={"source": ("read-path", "delete-path"), "destination": _WRITE},
        is_idempotent=False,
        is_destructive=True,
    ),
    _tool(
        "search",
        "Lines that match a regular expression.",
        needs={"query": _TEXT},
        may={"pattern": _PATTERN, "limit": _COUNT},
        returns=_HITS,
        roles={},
        is_read_only=True,
    ),
    _tool(
        "fingerprint",
        "SHA-256 of a file, or of all files if no path is given.",
        needs={},
        may={"path": _PATH},
        returns=_TEXT,
        roles={"path": _READ},
        is_read_only=True,
    ),
    _tool(
        "proposals",
        "The staged changes that wait for a person to commit them.",
        needs={},
        returns=_PROPOSALS,
        roles={},
        is_read_only=True,
    ),
    _tool(
        "withdraw",
        "Drop staged changes at these paths, or all of them. Returns their paths.",
        needs={},
        may={"paths": _PATHS},
        returns={"type": "array", "items": _TEXT},
        roles={},
    ),
)
"""Everything a guest can do with its world. Only the host can commit proposals."""
