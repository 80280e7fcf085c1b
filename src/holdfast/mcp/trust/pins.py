"""Pins: the tool definitions a person has accepted, so that a server cannot change them behind the person's back.

The first list a server gives is accepted as it is. From then on a tool that differs, or is new, is held: it is kept
beside the accepted one, shown by `holdfast mcp diff`, and not offered until it is trusted.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from holdfast.core import Value, escape_invisible
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.mcp.client.tool_definitions import Definition
from holdfast.store import replace_private

FORMAT = 1


class PinnedServer(Value):
    """What is known of one server."""

    source: str
    """Which program or address stood behind the name when it was trusted."""
    tools: dict[str, Definition] = msgspec.field(default_factory=dict)
    held: dict[str, Definition] = msgspec.field(default_factory=dict)
    """The newest definitions that differ, or are new, and have not been seen."""
    held_source: str = ""
    protocol: str = ""
    offers: tuple[str, ...] = ()
    """What it has beside tools: `resources`, `prompts`."""


class Comparison(Value):
    """A server's list set against its pins."""

    offered: tuple[Definition, ...] = ()
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_other_server: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether nothing has to be shown to a person."""
        return not (self.changed or self.added or self.is_other_server)


class _Document(msgspec.Struct):
    format: int = FORMAT
    servers: dict[str, PinnedServer] = {}


class Pins:
    """The accepted definitions of all servers, in a file only its owner can read; without a path, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._servers: dict[str, PinnedServer] = _load(path) if path else {}

    def server(self, name: str) -> PinnedServer | None:
        """What is known of a server, None for one never seen."""
        return self._servers.get(name)

    def names(self) -> tuple[str, ...]:
        """Every server ever seen."""
        return tuple(self._servers)

    def compare(
        self,
        name: str,
        source: str,
        definitions: Iterable[Definition],
        *,
        protocol: str = "",
        offers: tuple[str, ...] = (),
    ) -> Comparison:
        """What of this list may be offered. A server never seen is pinned as it is; a difference is held, on disk."""
        fresh = {each.name: each for each in definitions}
        known = self._servers.get(name)
        if known is None:
            self._keep(name, PinnedServer(source=source, tools=fresh, protocol=protocol, offers=offers))
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
            self._keep(name, after)
        return Comparison(
            offered=tuple(each for tool, each in fresh.items() if tool not in held),
            changed=changed,
            added=added,
            removed=tuple(tool for tool in known.tools if tool not in fresh),
            is_other_server=is_other,
        )

    def trust(self, name: str, tools: Iterable[str] | None = None) -> tuple[str, ...]:
        """Accept held definitions, all of them unless named. Raises InvalidInput where one is not held."""
        known = self._servers.get(name)
        if known is None:
            raise InvalidInput(f"no server {name!r} has been seen yet", hint="holdfast mcp list")
        chosen = tuple(known.held) if tools is None else tuple(tools)
        if missing := [tool for tool in chosen if tool not in known.held]:
            raise InvalidInput(f"{name}.{missing[0]} is not held", hint=f"holdfast mcp diff {name}")
        if known.held_source:
            if tools is not None:
                raise InvalidInput(f"another program stands behind {name!r}; trust it whole or not at all")
            after = msgspec.structs.replace(
                known, source=known.held_source, tools=known.held, held={}, held_source=""
            )
        else:
            after = msgspec.structs.replace(
                known,
                tools=known.tools | {tool: known.held[tool] for tool in chosen},
                held={tool: each for tool, each in known.held.items() if tool not in chosen},
            )
        self._keep(name, after)
        return chosen

    def forget(self, name: str) -> None:
        """Drop a server; its next list is a first one."""
        if name in self._servers:
            servers = {each: pinned for each, pinned in self._servers.items() if each != name}
            self._save(servers)

    def diff(self, name: str) -> str:
        """The held definitions against the accepted ones, as a unified diff with nothing invisible in it."""
        known = self._servers.get(name)
        if known is None:
            return ""
        parts = []
        if known.held_source:
            parts.append(f"another program or address stands behind {name!r} than when it was trusted\n")
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

    def _keep(self, name: str, pinned: PinnedServer) -> None:
        self._save(self._servers | {name: pinned})

    def _save(self, servers: dict[str, PinnedServer]) -> None:
        # Another process may have pinned other servers since: only what differs from what we read is ours to write.
        changed = {
            name for name in {*servers, *self._servers} if servers.get(name) != self._servers.get(name)
        }
        merged = (_load(self._path) if self._path else dict(self._servers)) | {
            name: servers[name] for name in changed & servers.keys()
        }
        self._servers = {
            name: each for name, each in merged.items() if name not in changed or name in servers
        }
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = msgspec.json.encode(_Document(servers=self._servers))
        replace_private(self._path, msgspec.json.format(document, indent=1))


def _load(path: Path) -> dict[str, PinnedServer]:
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidConfig(
            f"{path}: the pinned tool definitions cannot be read: {error}",
            hint="look at the file; if you remove it, every server's next list is accepted as its first",
        ) from error
    if document.format != FORMAT:
        raise InvalidConfig(f"{path}: format {document.format} is newer than this program")
    return document.servers


def _lines(definition: Definition) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(definition), indent=2).decode()
    return [f"{line}\n" for line in escape_invisible(text).splitlines()]
