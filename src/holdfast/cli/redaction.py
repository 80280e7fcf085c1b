"""Redaction of known secrets (keys of servers and providers) from everything that a command writes."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec
    from holdfast.session import Settings
    from holdfast.store import Redactor


def known_secrets(root: Path) -> "Redactor":
    """A redactor for the secrets in this data directory and in the environment."""
    from holdfast.app import redactor
    from holdfast.store import Home

    return redactor(*secret_sources(root), Home(root))


def secret_sources(root: Path) -> "tuple[tuple[ServerSpec, ...], Settings]":
    """The MCP servers and the settings that may hold secrets, as far as they can be read."""
    from holdfast.config import load_config
    from holdfast.mcp import McpFiles
    from holdfast.session import Settings
    from holdfast.store import Home

    try:
        servers = McpFiles(root).servers()
    except (OSError, HoldfastError):
        servers = ()  # the command that needs them reports the error
    try:
        settings = load_config(Home(root))
    except (OSError, HoldfastError):
        settings = Settings()
    return servers, settings


class LazyRedactor:
    """Looks the secrets up at the first write, because most commands only read and should not wait for the lookup."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._redactor: Redactor | None = None

    def __call__(self, body: bytes) -> bytes:
        """The body without secrets."""
        self._redactor = self._redactor or known_secrets(self._root)
        return self._redactor(body)
