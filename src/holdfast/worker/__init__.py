"""Many sessions on many machines: workers that take turns from a shared store. The engine only says that there is work."""

from holdfast.worker.dispatch import Dispatch, Handler, NotNow
from holdfast.worker.memory_dispatch import MemoryDispatch
from holdfast.worker.open import install_dispatch, open_dispatch
from holdfast.worker.requests import cancel_turn, post_message, wake, wake_worker
from holdfast.worker.worker import Worker

__all__ = [
    "Dispatch",
    "Handler",
    "MemoryDispatch",
    "NotNow",
    "Worker",
    "cancel_turn",
    "install_dispatch",
    "open_dispatch",
    "post_message",
    "wake",
    "wake_worker",
]
