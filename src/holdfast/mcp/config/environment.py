"""The environment of a server: a minimal base, what its entry names, and never a key of ours."""

import re
from collections.abc import Collection, Mapping

from holdfast.core.errors import InvalidConfig
from holdfast.mcp.config.servers import ServerSpec, fill_in, variables_in

BASE = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a program needs to start at all. Nothing in it is a secret."""

_OURS = re.compile(
    r"HOLDFAST_.*|(ANTHROPIC|OPENAI|GEMINI|GOOGLE|MISTRAL|GROQ|OPENROUTER|OLLAMA)_(API_KEY|AUTH_TOKEN)"
)
"""Keys that pay for the model. A server that wants one is to be given one of its own."""


_SECRET = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
MIN_SECRET_LENGTH = 8
"""Shorter ones are words; redacting those would make results unreadable."""


def refuse_keys(spec: ServerSpec, keys: Collection[str]) -> None:
    """Let no server have a key that pays for the model. `keys` are the variables that hold one. Raises InvalidConfig."""
    for name in spec.variables:
        if name in keys or _OURS.fullmatch(name):
            raise InvalidConfig(
                f"server {spec.name!r} asks for {name}, which is a key of ours",
                hint="give the server a key of its own under another name",
            )


def environment_for(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Everything the server will find in its environment. Raises InvalidConfig where a variable may not or cannot be."""
    values = _allowed(spec, environ)
    base = {name: environ[name] for name in BASE if name in environ and not environ[name].startswith("()")}
    # The workspace is the working directory and the agent writes there: Python must not take modules from it.
    return base | {"PYTHONSAFEPATH": "1"} | {name: fill_in(text, values) for name, text in spec.env.items()}


def arguments_for(spec: ServerSpec, environ: Mapping[str, str]) -> list[str]:
    """The program's arguments with the allowed variables filled in."""
    values = _allowed(spec, environ)
    return [fill_in(text, values) for text in spec.args]


def headers_for(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request to an HTTP server, filled in."""
    values = _allowed(spec, environ)
    return {name: fill_in(text, values) for name, text in spec.headers.items()}


def secrets_of(spec: ServerSpec, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Secrets handed to this server, by their names; whoever records its results redacts them."""
    found: list[str] = []
    unnamed = (("", text) for text in spec.args)
    for name, text in (*spec.env.items(), *spec.headers.items(), *unnamed):
        used = variables_in(text)
        found += [environ[each] for each in used if each in environ and _SECRET.search(f"{name} {each}")]
        if not used and _SECRET.search(name):
            found.append(text.split()[-1] if text.split() else "")  # of `Bearer x`, x
    return tuple(dict.fromkeys(text for text in found if len(text) >= MIN_SECRET_LENGTH))


def _allowed(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for name in spec.variables:
        if name not in environ:
            raise InvalidConfig(
                f"server {spec.name!r} needs the variable {name}, which is not set",
                hint=f"export {name}=... and start again",
            )
        values[name] = environ[name]
    return values
