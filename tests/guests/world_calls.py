"""Performs the calls of a guest on a real world, without a gate."""

from holdfast.core import Answer, Call, Failed, JsonObject, Returned, call_id, digest_bytes
from holdfast.core.errors import HoldfastError
from holdfast.world import StagedWorld, World, WorldToolset


async def _keep(content: bytes) -> str:
    return digest_bytes(content)


class WorldCalls:
    """Performs each call and records its name and path."""

    def __init__(self, world: World) -> None:
        self.made: list[tuple[str, str]] = []
        self._toolset = WorldToolset(world, StagedWorld(world), keep=_keep)

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        self.made.append((operation, str(arguments.get("path", ""))))
        call = Call(id=call_id(1, len(self.made)), operation=operation, arguments=arguments)
        try:
            performed = await self._toolset.perform(call, is_staged=False)
        except (HoldfastError, OSError, ValueError) as problem:
            return Failed(error=type(problem).__name__, reason=str(problem))
        return Returned(value=performed.result)
