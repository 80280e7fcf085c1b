"""Counts of what the sessions of this process do, and of what waits in a shared store, in Prometheus's text format.

They hold numbers and names of models, queues and results, never contents.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.core.events import (
    CallRefused,
    CallSettled,
    EscalationOpened,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    TurnEnded,
)
from holdfast.session import LiveSessions, Session
from holdfast.store import Store, store_status

if TYPE_CHECKING:
    from holdfast.worker import Dispatch

Labels = tuple[tuple[str, str], ...]
_HELP = {
    "holdfast_turns_total": ("counter", "Turns that ended, by outcome."),
    "holdfast_model_replies_total": ("counter", "Replies of models."),
    "holdfast_model_failures_total": ("counter", "Requests to models that failed, by error code."),
    "holdfast_model_tokens_total": ("counter", "Tokens of models, by kind."),
    "holdfast_calls_total": ("counter", "Calls that the gate decided, by result."),
    "holdfast_escalations_total": ("counter", "Calls that began to wait for a person."),
    "holdfast_live_sessions": ("gauge", "Sessions that this process holds."),
    "holdfast_queue_jobs": ("gauge", "Jobs of workers, by queue and state."),
    "holdfast_queue_oldest_seconds": ("gauge", "How long the oldest job of a queue waits."),
    "holdfast_store_sessions": ("gauge", "Sessions in the store."),
    "holdfast_store_waiting": ("gauge", "Sessions that wait for a person."),
    "holdfast_store_requests": ("gauge", "Requests that no process has carried out yet."),
    "holdfast_store_bytes": ("gauge", "Size of the database."),
    "holdfast_processes": ("gauge", "Processes that have the store open."),
}


class Metrics:
    """Counts from when it was created."""

    def __init__(self, live: LiveSessions, store: Store) -> None:
        self._live = live
        self._store = store
        self._counts: Counter[tuple[str, Labels]] = Counter()
        live.on_open(self._follow)

    async def text(self) -> str:
        """The counts now. Raises StoreUnavailable."""
        samples = [(name, labels, float(value)) for (name, labels), value in self._counts.items()]
        samples.append(("holdfast_live_sessions", (), float(len(self._live.all()))))
        from holdfast.worker import shared_by_workers  # most stores have no workers

        if (shared := shared_by_workers(self._store)) is not None:
            samples += await _shared_samples(str(shared[0].address), shared[1])
        return _render(samples)

    def _follow(self, session: Session) -> None:
        before = session.last_seq

        def count(recorded: RecordedEvent) -> None:
            if recorded.seq > before:
                self._count(recorded)

        session.follow(count)

    def _count(self, recorded: RecordedEvent) -> None:
        match event := recorded.event:
            case TurnEnded():
                outcome = str(type(event.outcome).__struct_config__.tag)
                self._add("holdfast_turns_total", ("outcome", outcome))
            case ModelReplied():
                model = ("model", event.model)
                self._add("holdfast_model_replies_total", model)
                for kind in ("input", "output", "cached"):
                    tokens = getattr(event.usage, f"{kind}_tokens")
                    self._add("holdfast_model_tokens_total", model, ("kind", kind), value=tokens)
            case ModelFailed():
                self._add("holdfast_model_failures_total", ("code", event.code))
            case CallSettled():
                self._add("holdfast_calls_total", ("result", event.status))
            case CallRefused():
                self._add("holdfast_calls_total", ("result", "refused"))
            case EscalationOpened():
                self._add("holdfast_escalations_total")
            case _:
                pass

    def _add(self, name: str, *labels: tuple[str, str], value: int = 1) -> None:
        self._counts[name, labels] += value


async def _shared_samples(url: str, dispatch: "Dispatch") -> list[tuple[str, Labels, float]]:
    status = await store_status(url)
    found: list[tuple[str, Labels, float]] = [
        ("holdfast_store_sessions", (), status.sessions),
        ("holdfast_store_waiting", (), status.waiting),
        ("holdfast_store_requests", (), status.requests),
        ("holdfast_store_bytes", (), status.bytes),
        ("holdfast_processes", (), len(status.workers)),
    ]
    for queue in await dispatch.queues():
        name = ("queue", queue.name)
        for state in ("waiting", "running", "failed"):
            found.append(("holdfast_queue_jobs", (name, ("state", state)), getattr(queue, state)))
        found.append(("holdfast_queue_oldest_seconds", (name,), queue.oldest_seconds))
    return found


def _render(samples: Sequence[tuple[str, Labels, float]]) -> str:
    lines: list[str] = []
    for name, (kind, words) in _HELP.items():
        own = sorted((labels, value) for each, labels, value in samples if each == name)
        if own:
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {value:g}" for labels, value in own]
    return "\n".join([*lines, ""])


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    parts = [f'{name}="{_escaped(value)}"' for name, value in labels]
    return f"{{{','.join(parts)}}}" if parts else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
