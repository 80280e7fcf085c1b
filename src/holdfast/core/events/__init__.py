"""Events: everything that can happen in a session, named in the past tense. The journal of events is the source of truth.

An event is written once and never changed. A field can be added with a default; no field is renamed or removed.

Each subject module defines its events, and this package exports all of them. To add an event, add its class to the
subject module: the decoder knows every subclass of `Event`. `hash_chain` defines the recorded form.
"""

from holdfast.core.events.approvals import *
from holdfast.core.events.base import *
from holdfast.core.events.calls import *
from holdfast.core.events.commands import *
from holdfast.core.events.files import *
from holdfast.core.events.session import *
from holdfast.core.events.teams import *
from holdfast.core.events.turn import *

# isort: split
# Last, because it builds the decoder from the events above.
from holdfast.core.events.hash_chain import *
