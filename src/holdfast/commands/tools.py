"""The definitions of the `shell.*` tools: names, parameters and argument roles."""

from holdfast.core import ArgumentRoles, JsonObject, Role, Tool

MAX_TIMEOUT_SECONDS = 1800
MAX_WAIT_SECONDS = 30
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGKILL")

_TEXT: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_SECONDS: JsonObject = {"type": "number", "minimum": 0}
_COMMAND: JsonObject = {
    "argv": {
        "type": "array",
        "items": _TEXT,
        "minItems": 1,
        "description": "the program and its arguments, run without a shell; give argv or script",
    },
    "script": {"type": "string", "description": "a shell script, run by bash; give argv or script"},
    "cwd": {"type": "string", "description": "the folder to run in, relative to the workspace"},
    "tty": {"type": "boolean", "description": "give the program a terminal"},
    "env": {"type": "object", "additionalProperties": _TEXT, "description": "more environment variables"},
    "hosts": {
        "type": "array",
        "items": _TEXT,
        "description": "hosts that the program will connect to, such as packages.example; each is judged",
    },
}
_PROCESS: JsonObject = {"type": "string", "description": "the id that shell.start returned"}
_CHANGES: JsonObject = {
    "type": "array",
    "items": {"type": "object", "properties": {"path": _TEXT, "kind": _TEXT, "verdict": _TEXT}},
}
_REFUSED: JsonObject = {
    "type": "array",
    "items": {"type": "object", "properties": {"path": _TEXT, "because": _TEXT}},
}
_RESULT: JsonObject = {
    "type": "object",
    "properties": {
        "code": {"type": ["integer", "null"]},
        "signal": _TEXT,
        "timed_out": _FLAG,
        "stopped": _TEXT,
        "output": _TEXT,
        "bytes": _COUNT,
        "blob": _TEXT,
        "changes": _CHANGES,
        "refused": _REFUSED,
        "scratch": _COUNT,
        "left": _COUNT,
        "hosts": {
            "type": "array",
            "items": {"type": "object", "properties": {"host": _TEXT, "verdict": _TEXT}},
        },
        "seconds": _SECONDS,
        "cpu_seconds": _SECONDS,
        "memory_mb": _COUNT,
    },
}


_ROLES: dict[str, tuple[Role, ...]] = {
    "argv": ("command",),
    "script": ("command",),
    "stdin": ("content",),
    "input": ("content",),
}


def _tool(
    verb: str,
    description: str,
    *,
    needs: JsonObject | None = None,
    may: JsonObject | None = None,
    returns: JsonObject,
) -> Tool:
    properties = (needs or {}) | (may or {})
    parameters: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(needs or {}),
        "additionalProperties": False,
    }
    return Tool(
        name=f"shell.{verb}",
        description=description,
        parameters=parameters,
        returns=returns,
        roles={name: ArgumentRoles(default=_ROLES.get(name, ("none",))) for name in properties},
    )


PYTHON_TOOL = _tool(
    "python",
    "Run code of the session in the project's own Python. The engine of the sandbox `system` calls it; models do not see it.",
    needs={"code": _TEXT},
    returns={"type": "object", "properties": {"process": _TEXT}},
)

SHELL_TOOLS: tuple[Tool, ...] = (
    _tool(
        "run",
        "Run a program to its end over the workspace with your staged changes. What it changes is judged like your own writes. "
        "Processes that it leaves behind are stopped; use shell.start for a server.",
        may=_COMMAND
        | {
            "stdin": {
                "type": "string",
                "description": "text for its standard input, which is otherwise closed",
            },
            "timeout_s": {"type": "number", "minimum": 1, "maximum": MAX_TIMEOUT_SECONDS},
        },
        returns=_RESULT,
    ),
    _tool(
        "start",
        "Start a program in the background, such as a dev server. It lives until shell.stop or the end of the session.",
        may=_COMMAND
        | {
            "name": {"type": "string", "description": "a name for people"},
            "ready": {
                "type": "object",
                "properties": {"port": _COUNT, "text": _TEXT, "within_s": _SECONDS},
                "additionalProperties": False,
                "description": "wait until it listens on a port, or prints a text",
            },
        },
        returns={
            "type": "object",
            "properties": {
                "process": _TEXT,
                "output": _TEXT,
                "ports": {"type": "array", "items": _COUNT},
                "is_running": _FLAG,
                "is_ready": _FLAG,
            },
        },
    ),
    _tool(
        "read",
        "The output of a background process, from a position on.",
        needs={"process": _PROCESS},
        may={
            "wait_s": {
                "type": "number",
                "minimum": 0,
                "maximum": MAX_WAIT_SECONDS,
                "description": "wait for more output, or for its end",
            },
            "after": {"type": "integer", "minimum": 0, "description": "the `next` of an earlier read"},
        },
        returns={
            "type": "object",
            "properties": {
                "output": _TEXT,
                "next": _COUNT,
                "is_running": _FLAG,
                "code": {"type": ["integer", "null"]},
                "signal": _TEXT,
                "changes": _CHANGES,
                "refused": _REFUSED,
            },
        },
    ),
    _tool(
        "write",
        "Write to the standard input or terminal of a background process, or send it a signal.",
        needs={"process": _PROCESS},
        may={"input": _TEXT, "signal": {"type": "string", "enum": list(SIGNALS)}},
        returns={"type": "null"},
    ),
    _tool(
        "stop",
        "Stop a background process and everything it started.",
        needs={"process": _PROCESS},
        returns=_RESULT,
    ),
)
"""Everything a guest can do with programs."""
