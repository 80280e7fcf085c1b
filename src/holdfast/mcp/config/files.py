"""The shelf: everything of MCP that lies in the home of Holdfast, and the toolsets that come of it.

mcp-servers.json        which servers there are
mcp-pins.json           the tool definitions that were accepted
tool-annotations.json   what the arguments of their tools mean, as a person confirmed it
mcp-clients.json        clients that show an elicitation to a human
"""

from collections.abc import Collection
from pathlib import Path

import msgspec

from holdfast.core import Paths
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.mcp.client.results import Present, present_plainly
from holdfast.mcp.client.toolset import McpToolset
from holdfast.mcp.config.servers import ServerSpec, load_servers
from holdfast.mcp.trust.argument_roles import Annotations, known_roles
from holdfast.mcp.trust.pins import Pins
from holdfast.store import replace_private


class _Clients(msgspec.Struct):
    clients: list[str] = []


class McpFiles:
    """The files of MCP in one home. The home is out of every agent's reach."""

    def __init__(self, root: Path) -> None:
        self.servers_file = root / "mcp-servers.json"
        self.annotations_file = root / "tool-annotations.json"
        self._clients_file = root / "mcp-clients.json"
        self.pins = Pins(root / "mcp-pins.json")

    def servers(self, file: Path | None = None) -> tuple[ServerSpec, ...]:
        """The configured servers; none where nobody has configured any. Raises InvalidConfig."""
        path = file or self.servers_file
        return load_servers(path) if file is not None or path.exists() else ()

    def server(self, name: str) -> ServerSpec:
        """One server. Raises InvalidInput where there is none of that name."""
        for spec in self.servers():
            if spec.name == name:
                return spec
        raise InvalidInput(f"there is no server {name!r}", hint="holdfast mcp list")

    def annotations(self) -> Annotations:
        """What is known of tools: what ships, and on top what a person confirmed."""
        return known_roles().merged(self.own_annotations())

    def own_annotations(self) -> Annotations:
        """What a person confirmed."""
        return Annotations.load(self.annotations_file) if self.annotations_file.exists() else Annotations({})

    def keep_annotations(self, annotations: Annotations) -> None:
        """Write what a person confirmed."""
        _write(self.annotations_file, annotations.document())

    def keep_servers(self, document: dict[str, object]) -> None:
        """Write the configuration of servers."""
        load_servers(document)
        _write(self.servers_file, msgspec.json.format(msgspec.json.encode(document), indent=2))

    def trusted_clients(self) -> frozenset[str]:
        """Clients that a person knows to show an elicitation to a human. Raises InvalidConfig."""
        try:
            return frozenset(msgspec.json.decode(self._clients_file.read_bytes(), type=_Clients).clients)
        except FileNotFoundError:
            return frozenset()
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidConfig(f"{self._clients_file}: {error}", hint="repair it or remove it") from error

    def trust_client(self, name: str) -> None:
        """Mark a client as one that shows an elicitation to a human."""
        names = sorted({*self.trusted_clients(), name})
        _write(self._clients_file, msgspec.json.encode(_Clients(clients=names)))

    def toolsets(
        self,
        *,
        workspace: Path,
        paths: Paths | None,
        keys: Collection[str] = (),
        file: Path | None = None,
        present: Present = present_plainly,
        has_extras: bool = False,
    ) -> tuple[McpToolset, ...]:
        """Every configured server as a toolset, none of them started. Variables in `keys` are given to none."""
        annotations = self.annotations()
        return tuple(
            McpToolset(
                spec,
                workspace=workspace,
                pins=self.pins,
                paths=paths,
                annotations=annotations,
                keys=keys,
                present=present,
                has_extras=has_extras,
            )
            for spec in self.servers(file)
        )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_private(path, content)
