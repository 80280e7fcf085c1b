"""`DeferredModel`: a provider's model whose library loads in a thread, when it is first needed or by `preload`.

A provider's library takes about a second of CPU to import. A prompt that is ready before that lets a person type meanwhile.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from holdfast.models.contract import Model, OnPiece, Prompt, Reply


class DeferredModel:
    """Builds the model behind it once, in a thread, so that the event loop and the terminal stay responsive."""

    def __init__(
        self,
        name: str,
        *,
        key: str | None,
        context_tokens: Callable[[], int | None],
        build: Callable[[], Model],
    ) -> None:
        self._name, self.key = name, key
        self._context_tokens, self._build = context_tokens, build
        self._built: asyncio.Task[Model] | None = None
        self._imports = _StoppableImports()
        self._is_awaited = False
        """Whether a request waits for the library, so that a cancelled `preload` does not stop it."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int | None:
        return self._context_tokens()

    async def preload(self) -> None:
        """Load the library now. Cancelling it stops the load, unless a request waits for it."""
        try:
            await self.load()
        except asyncio.CancelledError:
            self._imports.is_stopped = not self._is_awaited
            raise

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        self._is_awaited = True
        return await (await self.load()).ask(prompt, on_piece)

    async def close(self) -> None:
        if self._built is not None:
            with suppress(_LoadStopped):
                await (await asyncio.shield(self._built)).close()

    async def load(self) -> Model:
        """The model behind this one, built if need be."""
        while True:
            if self._built is None:
                self._imports = _StoppableImports()
                self._built = asyncio.create_task(asyncio.to_thread(self._imports.run, self._build))
            built = self._built
            try:
                # Shielded: a cancelled request must not cancel the load that the next one waits for.
                return await asyncio.shield(built)
            except _LoadStopped:
                if self._built is built:
                    self._built = None


class _LoadStopped(BaseException):
    """The load was stopped. Not an Exception, so that no library takes it for a module that is missing."""


class _StoppableImports:
    """A finder of modules that finds none: when it is stopped, it ends the imports of its own thread at their next module.

    A thread cannot be cancelled, and Python waits for it at exit.
    """

    def __init__(self) -> None:
        self.is_stopped = False
        self._thread = 0

    def run(self, build: Callable[[], Model]) -> Model:
        """Build a model in this thread. Raises _LoadStopped."""
        self._thread = threading.get_ident()
        # A new list each time: another thread may be walking through the old one.
        sys.meta_path = [self, *sys.meta_path]
        try:
            return build()
        finally:
            sys.meta_path = [each for each in sys.meta_path if each is not self]

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Find nothing, like a finder that does not know the module."""
        if self.is_stopped and threading.get_ident() == self._thread:
            raise _LoadStopped
