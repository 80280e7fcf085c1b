"""Secrecy: keys that were handed to servers and providers are taken out of whatever a command writes."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec
    from holdfast.models import ModelSettings
    from holdfast.store import Redactor


def known_secrets(root: Path) -> "Redactor":
    """Takes out what this home and the environment know."""
    from holdfast.app import redactor

    return redactor(*secret_sources(root))


def secret_sources(root: Path) -> "tuple[tuple[ServerSpec, ...], ModelSettings]":
    """The servers of this home and how its models are asked, as far as that can be read."""
    from holdfast.config import load_config
    from holdfast.mcp import McpFiles
    from holdfast.models import ModelSettings
    from holdfast.store import Home

    try:
        servers = McpFiles(root).servers()
    except (OSError, HoldfastError):
        servers = ()  # what is wrong with them is told elsewhere
    try:
        asking = load_config(Home(root)).asking
    except (OSError, HoldfastError):
        asking = ModelSettings()
    return servers, asking


class LazyRedactor:
    """Looks the secrets up when the first thing is written: most commands only read, and should not wait for it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._redactor: Redactor | None = None

    def __call__(self, body: bytes) -> bytes:
        """What may be written of it."""
        self._redactor = self._redactor or known_secrets(self._root)
        return self._redactor(body)
