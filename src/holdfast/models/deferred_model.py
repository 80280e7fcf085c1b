"""`DeferredModel`: a provider's model whose library loads in a thread, when it is first needed or by `preload`.

A provider's library takes about a second of CPU to import. A prompt that is ready before that lets a person type meanwhile.
"""

import asyncio
from collections.abc import Callable

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

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int | None:
        return self._context_tokens()

    async def preload(self) -> None:
        """Load the library now."""
        await self.load()

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        return await (await self.load()).ask(prompt, on_piece)

    async def close(self) -> None:
        if self._built is not None:
            await (await self.load()).close()

    async def load(self) -> Model:
        """The model behind this one, built if need be."""
        if self._built is None:
            self._built = asyncio.create_task(asyncio.to_thread(self._build))
        # Shielded: a cancelled request must not cancel the load that the next one waits for.
        return await asyncio.shield(self._built)
