"""A local server with the wire formats of the providers and prepared replies.

It is the scripted model behind real HTTP, for tests of everything between Holdfast and a provider, including faults.
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
