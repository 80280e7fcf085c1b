"""A local server that speaks the wire formats of the providers and says what it was told to say.

It is the scripted model behind real HTTP: for tests of everything between us and a provider, the faults included.
"""

from tests.support.provider_stub.faults import BrokenCall, Cut, Endless, Fault, Garbled, Hang, HttpError, Raw
from tests.support.provider_stub.server import StubRequest, StubServer

__all__ = [
    "BrokenCall",
    "Cut",
    "Endless",
    "Fault",
    "Garbled",
    "Hang",
    "HttpError",
    "Raw",
    "StubRequest",
    "StubServer",
]
