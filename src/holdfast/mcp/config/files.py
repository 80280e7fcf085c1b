"""The MCP files in Holdfast's data directory, and the toolsets that they describe.

mcp-servers.json        the configured servers
mcp-pins.json           the accepted tool definitions
tool-annotations.json   the argument roles that a person confirmed
mcp-clients.json        the clients that show an elicitation to a human
"""

from collections.abc import Collection
from pathlib import Path

import msgspec

from holdfast.core import Paths
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.mcp.client.results import ResultFormatter, format_for_code
from holdfast.mcp.client.toolset import McpToolset
from holdfast.mcp.config.servers import ServerSpec, load_servers
from holdfast.mcp.trust.argument_roles import Annotations, known_roles
from holdfast.mcp.trust.pins import Pins
from holdfast.store import Home, Store, open_document, read_settings, replace_private

PINS_FILE = "mcp-pins.json"


class _Clients(msgspec.Struct):
    clients: list[str] = []


class McpFiles:
    """The MCP files of one data directory, which no agent can access."""

    def __init__(self, root: Path, *, pins: Pins | None = None) -> None:
        self.servers_file = root / "mcp-servers.json"
        self.annotations_file = root / "tool-annotations.json"
        self._clients_file = root / "mcp-clients.json"
        self.pins = pins or Pins(root / PINS_FILE)

    def servers(self, file: Path | None = None) -> tuple[ServerSpec, ...]:
        """The configured servers; none if the file does not exist. Raises InvalidConfig."""
        path = file or self.servers_file
        return load_servers(path) if file is not None or path.exists() else ()

    def server(self, name: str) -> ServerSpec:
        """The server with this name. Raises InvalidInput if there is none."""
        for spec in self.servers():
            if spec.name == name:
                return spec
        raise InvalidInput(f"there is no server {name!r}", hint="holdfast mcp list")

    def annotations(self) -> Annotations:
        """All argument roles: the shipped ones, overridden by those that a person confirmed."""
        return known_roles().merged(self.confirmed_annotations())

    def confirmed_annotations(self) -> Annotations:
        """The argument roles that a person confirmed."""
        return Annotations.load(self.annotations_file) if self.annotations_file.exists() else Annotations({})

    def save_annotations(self, annotations: Annotations) -> None:
        """Write the argument roles that a person confirmed."""
        _write(self.annotations_file, annotations.document())

    def save_servers(self, document: dict[str, object]) -> None:
        """Check and write `mcp-servers.json`."""
        load_servers(document)
        _write(self.servers_file, msgspec.json.format(msgspec.json.encode(document), indent=2))

    def trusted_clients(self) -> frozenset[str]:
        """The clients that show an elicitation to a human, as a person confirmed. Raises InvalidConfig."""
        try:
            return frozenset(msgspec.json.decode(read_settings(self._clients_file), type=_Clients).clients)
        except FileNotFoundError:
            return frozenset()
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            raise InvalidConfig(f"{self._clients_file}: {error}", hint="fix or remove the file") from error

    def trust_client(self, name: str) -> None:
        """Record that a client shows an elicitation to a human."""
        names = sorted({*self.trusted_clients(), name})
        _write(self._clients_file, msgspec.json.encode(_Clients(clients=names)))

    def toolsets(
        self,
        *,
        workspace: Path,
        paths: Paths | None,
        keys: Collection[str] = (),
        file: Path | None = None,
        format_result: ResultFormatter = format_for_code,
        has_extras: bool = False,
    ) -> tuple[McpToolset, ...]:
        """A toolset for every configured server, not started. No server gets the variables in `keys`."""
        annotations = self.annotations()
        return tuple(
            McpToolset(
                spec,
                workspace=workspace,
                pins=self.pins,
                paths=paths,
                annotations=annotations,
                keys=keys,
                format_result=format_result,
                has_extras=has_extras,
            )
            for spec in self.servers(file)
        )


async def open_pins(home: Home, store: Store) -> Pins:
    """The pins of a data directory, or those of the store that machines share, as they are now. Raises InvalidConfig."""
    pins = Pins(open_document(store, home.root / PINS_FILE))
    await pins.refresh()
    return pins


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_private(path, content)
