"""Many sessions on many machines: workers that take turns from a shared store. The engine only says that there is work."""

from holdfast.worker.dispatch import DEFAULT_QUEUE, Dispatch, Handler, NotNow, QueueStatus
from holdfast.worker.local_postgres import LocalPostgres
from holdfast.worker.memory_dispatch import MemoryDispatch
from holdfast.worker.open import ENGINES, find_dispatch, install_dispatch, open_dispatch
from holdfast.worker.requests import cancel_turn, post_message, post_request, shared_by_workers
from holdfast.worker.worker import DRAIN_SECONDS, Worker
from holdfast.worker.worker_processes import WorkerProcesses

__all__ = [
    "DEFAULT_QUEUE",
    "DRAIN_SECONDS",
    "ENGINES",
    "Dispatch",
    "Handler",
    "LocalPostgres",
    "MemoryDispatch",
    "NotNow",
    "QueueStatus",
    "Worker",
    "WorkerProcesses",
    "cancel_turn",
    "find_dispatch",
    "install_dispatch",
    "open_dispatch",
    "post_message",
    "post_request",
    "shared_by_workers",
]
