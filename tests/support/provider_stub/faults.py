"""Faults: what a provider may do instead of answering."""

from holdfast.core import Value


class HttpError(Value):
    """The request is answered with an error status. `kind` is the provider's own word for it."""

    status: int
    kind: str = ""
    message: str = "the stub was told to fail"
    retry_after: str | None = None


class Cut(Value):
    """The connection breaks after these words."""

    said: str = "half a sent"


class Garbled(Value):
    """The stream holds something that is no JSON."""


class BrokenCall(Value):
    """A tool is called with arguments that are no JSON object."""

    tool: str
    arguments: str = '{"path": "a'


class Endless(Value):
    """The words never end; the server goes on until the client leaves."""

    said: str = "on and "


class Hang(Value):
    """The stream begins and then nothing comes, until the client leaves."""

    said: str = "hold"


class Raw(Value):
    """These bytes are the body of a stream, whatever they are."""

    content: bytes


Fault = HttpError | Cut | Garbled | BrokenCall | Endless | Hang | Raw
