"""Faults: what a provider may do instead of replying."""

from holdfast.core import Value


class HttpError(Value):
    """The response has an error status. `kind` is the provider's own error type."""

    status: int
    kind: str = ""
    message: str = "the script requested this failure"
    retry_after: str | None = None


class Cut(Value):
    """The connection breaks after this text."""

    text: str = "half a sent"


class Garbled(Value):
    """The stream contains invalid JSON."""


class BrokenCall(Value):
    """A tool is called with arguments that are not a JSON object."""

    tool: str
    arguments: str = '{"path": "a'


class Endless(Value):
    """The text never ends; the server sends it until the client disconnects."""

    text: str = "on and "


class Hang(Value):
    """The stream starts and then hangs until the client disconnects."""

    text: str = "hold"


class Raw(Value):
    """The body of the stream is these bytes."""

    content: bytes


Fault = HttpError | Cut | Garbled | BrokenCall | Endless | Hang | Raw
