"""The engines of a process: created when a session first needs them, shared by all sessions, closed together."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from holdfast.core import Toolset
from holdfast.core.errors import EngineMissing
from holdfast.guests.auto import AutoEngine
from holdfast.guests.contract import Engine, Guest, GuestLimits, StagedContents
from holdfast.guests.python import python_engine
from holdfast.guests.system import Interpreters, SystemEngine, system_engine

if TYPE_CHECKING:
    from holdfast.guests.wasi import WasiEngine, WorkerPool

Tracked = TypeVar("Tracked", bound=Engine)

Sandbox = Literal["python", "wasi", "auto", "lisp", "system"]


class Engines:
    """Creates the guest of a session in the sandbox that was chosen for it."""

    def __init__(
        self,
        *,
        key: bytes,
        cache: Path,
        progress: Callable[[str], None] = lambda _: None,
        value_bytes: int = GuestLimits().value_bytes,
    ) -> None:
        self._progress = progress
        self._key = key
        self._cache = cache
        self._python = python_engine(key=key, value_bytes=value_bytes)
        self._workers: WorkerPool | None = None
        self._lisp_engine: Engine | None = None
        self._others: list[Engine] = []

    def guest(
        self,
        sandbox: Sandbox,
        *,
        workspace: Path,
        view: Path,
        staged: StagedContents = dict,
        interpreters: Interpreters | None = None,
    ) -> Guest:
        """A new guest for this workspace. Raises EngineMissing; a weaker engine is never used instead.

        An engine that works on a folder gets a copy of the workspace in `view`, with the staged changes, so that the gate can
        judge what it changes. `interpreters` start the project's Python; None where no program can run.
        """
        return self.engine(
            sandbox, workspace=workspace, view=view, staged=staged, interpreters=interpreters
        ).guest()

    def engine(
        self,
        sandbox: Sandbox,
        *,
        workspace: Path,
        view: Path,
        staged: StagedContents = dict,
        interpreters: Interpreters | None = None,
    ) -> Engine:
        """The engine of a sandbox, as `guest` uses it. Raises EngineMissing."""
        match sandbox:
            case "python":
                return self._python
            case "lisp":
                return self._lisp()
            case "wasi":
                return self._track(self._wasi(workspace, view, staged))
            case "system":
                return self._track(self._system(interpreters))
            case "auto":
                system = None if interpreters is None else self._track(self._system(interpreters))
                wasi = None
                if system is None or _has_wasi():
                    wasi = self._track(self._wasi(workspace, view, staged))
                return AutoEngine(python=self._python, system=system, wasi=wasi)

    def toolsets(self, sandbox: Sandbox) -> tuple[Toolset, ...]:
        """The operations of the language itself that a policy may forbid."""
        if sandbox != "lisp":
            return ()
        from holdfast.guests.lisp import LanguageToolset

        return (LanguageToolset(),)

    def needs_building(self, sandbox: Sandbox) -> bool:
        """Whether the first run would have to wait for a build. Raises EngineMissing if the engine cannot be built."""
        if sandbox not in ("wasi", "auto"):
            return False
        from holdfast.guests.wasi import check_installed, is_built

        check_installed()
        return not is_built(cache=self._cache)

    async def prepare(self) -> None:
        """Build what must be built once: CPython for WebAssembly."""
        from holdfast.guests.wasi import WorkerPool, check_installed

        check_installed()
        if self._workers is None:
            self._workers = WorkerPool(key=self._key, cache=self._cache, progress=self._progress)
        await self._workers.prepare()

    async def close(self) -> None:
        """Stop every worker. Idempotent."""
        others, self._others, self._lisp_engine = self._others, [], None
        for engine in others:
            await engine.close()
        if self._workers is not None:
            await self._workers.close()
            self._workers = None
        await self._python.close()

    def _lisp(self) -> Engine:
        """One engine for all sessions, which share its threads."""
        if self._lisp_engine is None:
            from holdfast.guests.lisp import lisp_engine

            self._lisp_engine = self._track(lisp_engine(key=self._key))
        return self._lisp_engine

    def _system(self, interpreters: Interpreters | None) -> SystemEngine:
        if interpreters is None:
            raise EngineMissing(
                "the system sandbox runs code in the full command sandbox, which this session does not have",
                hint="check it with: holdfast doctor; the policy must allow shell.python, and [shell] must not be disabled",
            )
        return system_engine(key=self._key, interpreters=interpreters)

    def _wasi(self, workspace: Path, view: Path, staged: StagedContents) -> "WasiEngine":
        from holdfast.guests.wasi import WorkerPool, wasi_engine

        if self._workers is None:
            self._workers = WorkerPool(key=self._key, cache=self._cache, progress=self._progress)
        return wasi_engine(
            key=self._key,
            cache=self._cache,
            workspace=workspace,
            staged_view=view,
            staged=staged,
            workers=self._workers,
        )

    def _track(self, engine: Tracked) -> Tracked:
        self._others.append(engine)
        return engine


def _has_wasi() -> bool:
    from holdfast.guests.wasi import check_installed

    try:
        check_installed()
    except EngineMissing:
        return False
    return True
