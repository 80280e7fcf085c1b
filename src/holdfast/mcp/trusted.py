"""Trusted clients: which MCP clients the person knows to show an elicitation to a human."""

from pathlib import Path

import msgspec

from holdfast.core.errors import InvalidConfig


class _Document(msgspec.Struct):
    clients: list[str] = []


class TrustedClients:
    """The names, in a file of the home; the home is out of every agent's reach."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> frozenset[str]:
        """Every client that was marked. Raises InvalidConfig."""
        try:
            return frozenset(msgspec.json.decode(self._path.read_bytes(), type=_Document).clients)
        except FileNotFoundError:
            return frozenset()
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidConfig(
                f"{self._path}: cannot be read: {error}", hint="repair it or remove it"
            ) from error

    def add(self, name: str) -> None:
        """Mark a client."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.new")
        draft.write_bytes(msgspec.json.encode(_Document(clients=sorted({*self.names(), name}))))
        draft.chmod(0o600)
        draft.replace(self._path)
