"""The environment, arguments and headers of a server: a minimal base, what its entry names, and never a model key."""

import re
from collections.abc import Collection, Mapping

from holdfast.core.errors import InvalidConfig
from holdfast.mcp.config.servers import ServerSpec, expand_variables

BASE_VARIABLES = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""What a program needs to start. None of it is secret."""

_MODEL_KEYS = re.compile(
    r"HOLDFAST_.*|(ANTHROPIC|OPENAI|GEMINI|GOOGLE|MISTRAL|GROQ|OPENROUTER|OLLAMA)_(API_KEY|AUTH_TOKEN)"
)
"""Variables with model keys. A server that needs such a key must get its own."""


def refuse_model_keys(spec: ServerSpec, keys: Collection[str]) -> None:
    """Raise InvalidConfig if an entry uses a variable with a model key. `keys` are the configured ones."""
    for name in spec.variables:
        if name in keys or _MODEL_KEYS.fullmatch(name):
            raise InvalidConfig(
                f"server {spec.name!r} asks for {name}, which is a model key",
                hint="give the server its own key in a variable with another name",
            )


def environment_for(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """The server's environment. Raises InvalidConfig if a variable is not set."""
    values = _values_of(spec, environ)
    base = {
        name: environ[name]
        for name in BASE_VARIABLES
        if name in environ and not environ[name].startswith("()")
    }
    # The server runs in the workspace, which the agent writes: Python must not import modules from there.
    return (
        base
        | {"PYTHONSAFEPATH": "1"}
        | {name: expand_variables(text, values) for name, text in spec.env.items()}
    )


def arguments_for(spec: ServerSpec, environ: Mapping[str, str]) -> list[str]:
    """The program's arguments with the allowed variables expanded."""
    values = _values_of(spec, environ)
    return [expand_variables(text, values) for text in spec.args]


def headers_for(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request to a URL, with the allowed variables expanded."""
    values = _values_of(spec, environ)
    return {name: expand_variables(text, values) for name, text in spec.headers.items()}


def _values_of(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for name in spec.variables:
        if name not in environ:
            raise InvalidConfig(
                f"server {spec.name!r} needs the variable {name}, which is not set",
                hint=f"export {name}=...",
            )
        values[name] = environ[name]
    return values
