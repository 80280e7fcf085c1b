"""The offer of one server: the tools that may be called, which are those that were accepted and are still the same."""

from collections.abc import Iterable

from holdfast.core import JsonObject, Tool
from holdfast.mcp.client.resources import extra_tools
from holdfast.mcp.client.tool_definitions import Definition, Refusal, read_definitions
from holdfast.mcp.config.servers import ServerSpec
from holdfast.mcp.contract import ToolsPendingReview
from holdfast.mcp.trust.argument_roles import Annotations
from holdfast.mcp.trust.pins import Pins


class AcceptedTools:
    """What stands in the pins until the server has spoken, and then what of its list agrees with them."""

    def __init__(self, spec: ServerSpec, *, pins: Pins, annotations: Annotations, has_extras: bool) -> None:
        self._spec = spec
        self._pins = pins
        self._annotations = annotations
        self._has_extras = has_extras
        known = pins.server(spec.name)
        self.is_known = known is not None and known.source == spec.source
        """Whether there is one before the server runs."""
        trusted = known if known is not None and known.source == spec.source else None
        self.beside: tuple[str, ...] = trusted.offers if trusted else ()
        """What the server has beside tools."""
        self.protocol = trusted.protocol if trusted else ""
        """What it spoke last."""
        self.refused: tuple[Refusal, ...] = ()
        """Tools the server lists and nobody can call."""
        self._by_name: dict[str, Tool] = {}
        self.tools: tuple[Tool, ...] = ()
        self._take(trusted.tools.values() if trusted else ())

    def __len__(self) -> int:
        return len(self._by_name)

    def tool(self, name: str) -> Tool | None:
        """The tool of this name, as the server calls it."""
        return self._by_name.get(name)

    def compare(
        self, listed: list[JsonObject], *, protocol: str, beside: tuple[str, ...]
    ) -> ToolsPendingReview | None:
        """Hold what a running server lists against the pins; what a person has to see first, where there is something."""
        definitions, self.refused = read_definitions(listed)
        self.beside, self.protocol, self.is_known = beside, protocol, True
        found = self._pins.compare(
            self._spec.name, self._spec.source, definitions, protocol=protocol, offers=beside
        )
        self._take(found.offered)
        if found.is_clean:
            return None
        return ToolsPendingReview(
            server=self._spec.name,
            changed=found.changed,
            added=found.added,
            is_other_server=found.is_other_server,
        )

    def _take(self, definitions: Iterable[Definition]) -> None:
        self._by_name = {each.name: self._annotations.apply(self._spec, each) for each in definitions}
        extras = extra_tools(self._spec.name, self.beside) if self._has_extras else ()
        self.tools = (*self._by_name.values(), *extras)
