"""The files that an engine changed by itself in the view it works on, put before the gate once its run is over."""

import base64
from collections.abc import Iterable

from holdfast.core import Change, Failed, JsonObject, Parked, Refused
from holdfast.guests import OnCall
from holdfast.world import World


class FolderChanges:
    """Gathers the changed files of a run; one that waits reports them in pieces."""

    def __init__(self, view: World | None) -> None:
        self._view = view
        """A copy of the workspace; None where no engine works on a folder."""
        self._touched: dict[str, bool] = {}
        """Each changed file, and whether it was there before the run."""

    def __bool__(self) -> bool:
        return bool(self._touched)

    def add(self, changes: Iterable[Change]) -> None:
        """What a run, or a piece of it, has changed."""
        for change in changes:
            self._touched.setdefault(change.path, change.kind != "created")

    def clear(self) -> None:
        """A run begins."""
        self._touched.clear()

    async def submit(self, on_call: OnCall) -> str | None:
        """Put every changed file before the gate. What was refused, in words; None where one waits."""
        assert self._view is not None, "an engine that changes files by itself is given a view to do it in"
        told: list[str] = []
        for path, was_there in sorted(self._touched.items()):
            if self._view.exists(path) and self._view.stat(path).kind == "file":
                answer = await on_call("world.write", _written(path, self._view.read(path)))
            elif was_there:
                answer = await on_call("world.delete", {"path": path})
            else:
                continue  # made and removed again in one run
            if isinstance(answer, Parked):
                return None
            if isinstance(answer, Refused | Failed):
                told.append(f"[{path} was not changed: {answer.reason}]\n")
        return "".join(told)


def _written(path: str, content: bytes) -> JsonObject:
    try:
        return {"path": path, "content": content.decode()}
    except UnicodeDecodeError:
        return {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}
