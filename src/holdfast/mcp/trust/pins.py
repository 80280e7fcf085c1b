"""Pins: the accepted tool definitions, so that a server cannot change them unnoticed.

The first list of a server is accepted. After that, a changed or added tool is held: its new definition is stored next to
the accepted one, shown by `holdfast mcp diff`, and not offered until a person trusts it.
"""

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.core import Value, escape_invisible
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.mcp.client.tool_definitions import ToolDefinition
from holdfast.mcp.trust.reordered import is_same_set
from holdfast.store import Document, FileDocument

FORMAT = 1
Result = TypeVar("Result")


class PinnedServer(Value):
    """The pins of one server."""

    source: str
    """The digest of the program or address when the server was trusted."""
    tools: dict[str, ToolDefinition] = msgspec.field(default_factory=dict)
    held: dict[str, ToolDefinition] = msgspec.field(default_factory=dict)
    """The latest definitions of changed and added tools, not reviewed yet."""
    held_source: str = ""
    protocol: str = ""
    offers: tuple[str, ...] = ()
    """What the server offers in addition to tools, such as `resources` and `prompts`."""
    is_reviewed: bool = False
    """Whether a person has read the definitions. Those of the first list are accepted unread."""


class Comparison(Value):
    """A server's tool list compared with its pins."""

    offered: tuple[ToolDefinition, ...] = ()
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_other_server: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to review."""
        return not (self.changed or self.added or self.is_other_server)


class _Document(msgspec.Struct):
    format: int = FORMAT
    servers: dict[str, PinnedServer] = {}


class Pins:
    """The accepted definitions of all servers: in a private file, in the store that machines share, or in memory."""

    def __init__(self, place: Path | Document | None = None) -> None:
        self._document = FileDocument(place) if isinstance(place, Path) else place
        self._servers: dict[str, PinnedServer] = {}
        self._reload()

    async def refresh(self) -> None:
        """Look at what other machines accepted. Raises StoreUnavailable, InvalidConfig."""
        if self._document is not None:
            await self._document.refresh()
            self._reload()

    async def update(self, action: Callable[[], Result]) -> Result:
        """Call `action`, which changes these pins, and return its result when the change is kept. Raises StoreUnavailable.

        Pins that other processes changed in the meantime count, so two machines that see a server first accept one list.
        """
        if self._document is None:
            return action()

        def on_newest() -> Result:
            self._reload()
            return action()

        return await self._document.update(on_newest)

    def server(self, name: str) -> PinnedServer | None:
        """The pins of a server; None if it is not known."""
        return self._servers.get(name)

    def names(self) -> tuple[str, ...]:
        """The names of all known servers."""
        return tuple(self._servers)

    def compare(
        self,
        name: str,
        source: str,
        definitions: Iterable[ToolDefinition],
        *,
        protocol: str = "",
        offers: tuple[str, ...] = (),
    ) -> Comparison:
        """Which tools of this list may be offered. An unknown server is pinned; a difference is held and stored."""
        known = self._servers.get(name)
        accepted = known.tools if known is not None and known.source == source else {}
        # INVARIANT: only an accepted text is offered. A list in another order is offered in the order that was accepted.
        fresh = {
            each.name: accepted[each.name]
            if each.name in accepted and is_same_set(accepted[each.name], each)
            else each
            for each in definitions
        }
        if known is None:
            self._store(name, PinnedServer(source=source, tools=fresh, protocol=protocol, offers=offers))
            return Comparison(offered=tuple(fresh.values()))
        is_other = known.source != source
        changed = tuple(
            tool for tool, each in fresh.items() if tool in known.tools and known.tools[tool] != each
        )
        added = tuple(tool for tool in fresh if tool not in known.tools)
        held = fresh if is_other else {tool: fresh[tool] for tool in (*changed, *added)}
        after = msgspec.structs.replace(
            known,
            held=held,
            held_source=source if is_other else "",
            protocol=protocol or known.protocol,
            offers=offers,
        )
        if after != known:
            self._store(name, after)
        return Comparison(
            offered=tuple(each for tool, each in fresh.items() if tool not in held),
            changed=changed,
            added=added,
            removed=tuple(tool for tool in known.tools if tool not in fresh),
            is_other_server=is_other,
        )

    def trust(self, name: str, tools: Iterable[str] | None = None) -> tuple[str, ...]:
        """Accept held definitions, by default all. Raises InvalidInput if one is not held."""
        known = self._servers.get(name)
        if known is None:
            raise InvalidInput(f"the server {name!r} is not known", hint="holdfast mcp list")
        chosen = tuple(known.held) if tools is None else tuple(tools)
        if missing := [tool for tool in chosen if tool not in known.held]:
            raise InvalidInput(f"{name}.{missing[0]} has nothing to review", hint=f"holdfast mcp diff {name}")
        if known.held_source:
            if tools is not None:
                raise InvalidInput(
                    f"{name!r} is now a different program, so its tools can only be trusted together"
                )
            after = msgspec.structs.replace(
                known, source=known.held_source, tools=known.held, held={}, held_source="", is_reviewed=True
            )
        else:
            after = msgspec.structs.replace(
                known,
                tools=known.tools | {tool: known.held[tool] for tool in chosen},
                held={tool: each for tool, each in known.held.items() if tool not in chosen},
            )
        self._store(name, after)
        return chosen

    def review(self, name: str) -> None:
        """Note that a person has read the accepted definitions of a server. Raises InvalidInput."""
        known = self._servers.get(name)
        if known is None:
            raise InvalidInput(f"the server {name!r} is not known", hint="holdfast mcp list")
        self._store(name, msgspec.structs.replace(known, is_reviewed=True))

    def accepted_text(self, name: str) -> str:
        """The accepted definitions of a server, with invisible characters escaped."""
        known = self._servers.get(name)
        return "".join(line for each in (known.tools if known else {}).values() for line in _lines(each))

    def forget(self, name: str) -> None:
        """Forget a server. Its next list is accepted as its first."""
        if name in self._servers:
            servers = {each: pinned for each, pinned in self._servers.items() if each != name}
            self._save(servers)

    def diff(self, name: str) -> str:
        """A unified diff of held and accepted definitions, with invisible characters escaped."""
        known = self._servers.get(name)
        if known is None:
            return ""
        parts = []
        if known.held_source:
            parts.append(f"{name!r} is now a different program or address than when it was trusted\n")
        for tool, fresh in known.held.items():
            old = known.tools.get(tool)
            before = _lines(old) if old is not None else []
            parts.append(
                "".join(
                    difflib.unified_diff(
                        before, _lines(fresh), f"accepted {name}.{tool}", f"offered {name}.{tool}"
                    )
                )
            )
        return "".join(parts)

    def _store(self, name: str, pinned: PinnedServer) -> None:
        self._save(self._servers | {name: pinned})

    def _save(self, servers: dict[str, PinnedServer]) -> None:
        # Another process may have pinned other servers in the meantime, so only our own changes are written.
        changed = {
            name for name in {*servers, *self._servers} if servers.get(name) != self._servers.get(name)
        }

        def merge() -> bytes:
            merged = self._load() | {name: servers[name] for name in changed & servers.keys()}
            self._servers = {
                name: each for name, each in merged.items() if name not in changed or name in servers
            }
            return msgspec.json.format(msgspec.json.encode(_Document(servers=self._servers)), indent=1)

        if self._document is None:
            self._servers = servers
        else:
            self._document.change(merge)

    def _reload(self) -> None:
        if self._document is not None:
            self._servers = self._load()

    def _load(self) -> dict[str, PinnedServer]:
        assert self._document is not None
        where = self._document.where
        try:
            document = msgspec.json.decode(self._document.read(), type=_Document)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidConfig(
                f"{where}: cannot read the pinned tool definitions: {error}",
                hint="fix the file; if you remove it, the next list of every server is accepted",
            ) from error
        if document.format != FORMAT:
            raise InvalidConfig(f"{where}: format {document.format} is newer than this program")
        return document.servers


def _lines(definition: ToolDefinition) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(definition), indent=2).decode()
    return [f"{line}\n" for line in escape_invisible(text).splitlines()]
