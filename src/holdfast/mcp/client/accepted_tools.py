"""The accepted tools of one server: those that a person has accepted and that have not changed since."""

from collections.abc import Iterable

from holdfast.core import JsonObject, Tool
from holdfast.mcp.client.resources import extra_tools
from holdfast.mcp.client.tool_definitions import RefusedTool, ToolDefinition, read_definitions
from holdfast.mcp.config.servers import ServerSpec
from holdfast.mcp.contract import ToolsPendingReview
from holdfast.mcp.trust.argument_roles import Annotations
from holdfast.mcp.trust.pins import PinnedServer, Pins


class AcceptedTools:
    """The pinned tools until the server answers; afterwards, the tools of its list that match the pins."""

    def __init__(self, spec: ServerSpec, *, pins: Pins, annotations: Annotations, has_extras: bool) -> None:
        self._spec = spec
        self._pins = pins
        self._annotations = annotations
        self._has_extras = has_extras
        pinned = pins.server(spec.name)
        trusted = pinned if pinned is not None and pinned.source == spec.source else None
        self.is_known = trusted is not None
        """Whether the tools are known before the server runs."""
        self.extras: tuple[str, ...] = trusted.offers if trusted else ()
        """What the server offers in addition to tools."""
        self.protocol = trusted.protocol if trusted else ""
        """The protocol version of the last connection."""
        self.refused: tuple[RefusedTool, ...] = ()
        """Listed tools that nothing can call."""
        self._unread: tuple[PinnedServer, tuple[Tool, ...]] | None = None
        self._by_name: dict[str, Tool] = {}
        self.tools: tuple[Tool, ...] = ()
        self._set_tools(trusted.tools.values() if trusted else ())

    @property
    def unread(self) -> tuple[Tool, ...]:
        """The tools whose definitions no person has read. A server cannot unsay one: it stays pinned when it is not listed."""
        pinned = self._pins.server(self._spec.name)
        if pinned is None:
            return self.tools
        if pinned.is_reviewed:
            return ()
        if self._unread is None or self._unread[0] is not pinned:
            tools = tuple(self._annotations.apply(self._spec, each) for each in pinned.tools.values())
            self._unread = pinned, tools
        return self._unread[1]

    def __len__(self) -> int:
        return len(self._by_name)

    def tool(self, name: str) -> Tool | None:
        """The tool with this name, as the server spells it."""
        return self._by_name.get(name)

    async def compare(
        self, listed: list[JsonObject], *, protocol: str, extras: tuple[str, ...]
    ) -> ToolsPendingReview | None:
        """Compare the list of a running server with the pins. Returns the differences that a person must review.

        Raises StoreUnavailable if the pins cannot be kept; then the tools that were accepted before are offered.
        """
        definitions, refused = read_definitions(listed)
        found = await self._pins.update(
            lambda: self._pins.compare(
                self._spec.name, self._spec.source, definitions, protocol=protocol, offers=extras
            )
        )
        self.refused, self.extras, self.protocol, self.is_known = refused, extras, protocol, True
        self._set_tools(found.offered)
        if found.is_clean:
            return None
        return ToolsPendingReview(
            server=self._spec.name,
            changed=found.changed,
            added=found.added,
            is_other_server=found.is_other_server,
        )

    def _set_tools(self, definitions: Iterable[ToolDefinition]) -> None:
        self._by_name = {each.name: self._annotations.apply(self._spec, each) for each in definitions}
        extras = extra_tools(self._spec.name, self.extras) if self._has_extras else ()
        self.tools = (*self._by_name.values(), *extras)
