"""Targets: what the arguments of a call refer to, by their roles. The only step of policy evaluation that does I/O.

`targets_of` is pure apart from the `Paths` it is given. `Resolver` also runs git to find where remotes lead. The author of a
repository controls what its configuration includes, even a pipe or a device. So git runs outside the event loop, a few
processes at a time, with a time limit and an output limit; a remote that git does not report in time is unresolved.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from holdfast.core import (
    ArgumentRoles,
    CommandTarget,
    Condition,
    Json,
    JsonObject,
    Location,
    NameTarget,
    Paths,
    PathTarget,
    Role,
    Target,
    Tool,
    UrlTarget,
    digest,
    encode,
    split_argv,
    split_script,
)
from holdfast.policy.git_remotes import GitRemotes, GitSettings, SettingsRemotes, canonical_remote
from holdfast.policy.urls import canonical_url, split_port

PATH_ROLES: tuple[Role, ...] = ("read-path", "write-path", "delete-path", "write-history", "delete-history")
URL_ROLES: tuple[Role, ...] = ("fetch-url", "git-remote-url", "proxy-domain")
_CARRYING: tuple[Role, ...] = ("read-path", "write-path")
DATA_ROLES: frozenset[Role] = frozenset(("content", "none"))
"""Roles of arguments that refer to nothing."""
OPAQUE_ROLES: frozenset[Role] = DATA_ROLES | {
    "branch-name", "commit-message", "email-body", "share-permission",
}  # fmt: skip
"""Roles that have no claim of their own; a rule may still test them."""


def roles_of(tool: Tool, arguments: JsonObject) -> dict[str, tuple[Role, ...]]:
    """The roles of each argument in this call: the first condition that holds decides."""
    return {
        name: _roles(roles, arguments) if roles.when else roles.default
        for name, roles in (tool.roles or {}).items()
    }


def contents_of(tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
    """The arguments of this call whose only role is content."""
    return tuple(
        name
        for name, roles in roles_of(tool, arguments).items()
        if roles == ("content",) and name in arguments
    )


def targets_of(
    tool: Tool, arguments: JsonObject, paths: Paths, *, remotes: GitRemotes | None = None
) -> tuple[Target, ...]:
    """Everything the arguments refer to, element by element, each path resolved once."""
    found: list[Target] = []
    located: dict[str, Location] = {}
    for name, roles in roles_of(tool, arguments).items():
        judged = [role for role in roles if role not in DATA_ROLES]
        value = arguments.get(name)
        if value is None and "git-remote-url" in judged:
            value = ""  # without a remote, git chooses one from its configuration
        if not judged or value is None:
            continue
        if "command" in judged:
            found += _command_targets(name, value, sets_environment=bool(arguments.get("env")))
            judged = [role for role in judged if role != "command"]
        for element in (value,) if isinstance(value, str) else _elements(value):
            for role in judged:
                if role in PATH_ROLES:
                    found.append(_path_target(role, name, element, paths, located))
                elif role == "git-remote-url":
                    folder = _repository(tool, arguments, paths, located)
                    found.extend(_remote_targets(name, element, folder, remotes))
                elif role in URL_ROLES:
                    found.append(_url_target(role, name, element, arguments.get("port")))
                else:
                    found.append(NameTarget(role=role, argument=name, value=_text(element)))
    return tuple(found)


def includes_subtree(target: Target, targets: Sequence[Target]) -> bool:
    """Whether a call affects everything beneath a path: a delete, or a read in one place and a write in another, as in a move
    or a copy."""
    if len(targets) < 2 or target.role not in _CARRYING:
        return target.role == "delete-path"
    read = {one.argument for one in targets if one.role == "read-path"}
    written = {one.argument for one in targets if one.role == "write-path"}
    return bool(read and written) and len(read | written) > 1


def _is_carried(target: PathTarget, targets: Sequence[Target]) -> bool:
    """Whether the call affects everything in a folder that is there."""
    location = target.location
    is_open = location.problem is None and location.protected is None and location.read_only is None
    # A symlink that is meant itself is not a folder, wherever it leads.
    is_folder = os.path.isdir(location.real) and not os.path.islink(location.real)
    return is_open and includes_subtree(target, targets) and is_folder


def _closed_below(targets: Sequence[PathTarget], paths: Paths) -> dict[str, str]:
    """The real folders that contain something closed to changes, with what it is."""
    folders = {target.location.real: target.location for target in targets}
    found = {real: paths.closed_below(location) for real, location in folders.items()}
    return {real: name for real, name in found.items() if name is not None}


def _with_closed(target: Target, closed: Mapping[str, str]) -> Target:
    if not isinstance(target, PathTarget) or target.location.real not in closed:
        return target
    location = msgspec.structs.replace(target.location, read_only=closed[target.location.real])
    return msgspec.structs.replace(target, location=location)


def condition_holds(condition: Condition, arguments: Mapping[str, Json]) -> bool:
    """Whether a condition on a sibling argument holds. The comparison is strict: `"true"` is not true."""
    value = arguments.get(condition.argument)
    match condition.presence:
        case "present":
            return condition.argument in arguments
        case "absent":
            return condition.argument not in arguments
        case "truthy":
            return bool(value)
        case "falsy":
            return not value
        case None:
            wanted = condition.one_of or (condition.equals,)
            return condition.argument in arguments and any(json_equal(value, one) for one in wanted)


def json_equal(one: Json, other: Json) -> bool:
    """JSON equality: true is not 1, and 1 is 1.0."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _roles(roles: ArgumentRoles, arguments: JsonObject) -> tuple[Role, ...]:
    for conditional in roles.when:
        if condition_holds(conditional.condition, arguments):
            return conditional.roles
    return roles.default


def _elements(value: Json) -> Iterator[Json]:
    """The scalars in a value, in order, including the keys of objects: a tool may use them as paths."""
    waiting = [value]  # a stack instead of recursion, because the guest chooses the depth
    while waiting:
        match waiting.pop():
            case list(parts):
                waiting.extend(reversed(parts))
            case dict(fields):
                waiting.extend(part for pair in reversed(fields.items()) for part in reversed(pair))
            case scalar:
                yield scalar


def _path_target(
    role: Role, argument: str, element: Json, paths: Paths, located: dict[str, Location]
) -> PathTarget:
    if not isinstance(element, str):
        location = Location(given=_text(element), problem=f"a path must be a string (got {_text(element)})")
    elif element in located:
        location = located[element]
    else:
        location = located[element] = paths.locate(element)
    return PathTarget(role=role, argument=argument, location=location)


def _command_targets(argument: str, value: Json, *, sets_environment: bool) -> list[CommandTarget]:
    """One target for each command that certainly runs: an argument list, or a script that is split into its commands."""
    if isinstance(value, str):
        split = split_script(value)
    elif isinstance(value, list) and all(isinstance(word, str) for word in value):
        split = split_argv([str(word) for word in value])
    else:
        split = split_script(encode(value).decode())
    if split.is_opaque:
        opaque = CommandTarget(
            role="command", argument=argument, words=split.words, is_opaque=True, digest=digest(value),
            sets_environment=sets_environment,
        )  # fmt: skip
        return [opaque]
    return [
        CommandTarget(
            role="command",
            argument=argument,
            words=command.argv,
            reads=command.reads,
            writes=command.writes,
            appends=command.appends,
            sets_environment=sets_environment,
        )
        for command in split.commands
    ]


def _url_target(role: Role, argument: str, element: Json, port: Json) -> UrlTarget:
    if not isinstance(element, str):
        return UrlTarget(role=role, argument=argument, given=_text(element), problem="is not a string")
    if role != "proxy-domain":
        return canonical_url(element, role=role, argument=argument)
    if set("@/?#") & set(element):
        return UrlTarget(role=role, argument=argument, given=element, problem="is not a plain host")
    host = f"[{element}]" if element.count(":") > 1 and not element.startswith("[") else element
    if isinstance(port, int) and not isinstance(port, bool) and split_port(element)[1] is None:
        host = f"{host}:{port}"
    # A connection has no scheme: what was given is the host.
    return msgspec.structs.replace(canonical_url(f"https://{host}", role=role, argument=argument), given=host)


def _remote_targets(
    argument: str, element: Json, folder: str | None, remotes: GitRemotes | None
) -> list[UrlTarget]:
    if not isinstance(element, str):
        return [
            UrlTarget(
                role="git-remote-url", argument=argument, given=_text(element), problem="is not a string"
            )
        ]
    # For URLs as well, because `insteadOf` rewrites them.
    urls = remotes.urls(folder, element) if remotes is not None and folder is not None else ()
    if not urls and element and folder is not None and remotes is not None:
        problem = "depends on the git configuration, which could not be read"
        return [UrlTarget(role="git-remote-url", argument=argument, given=element, problem=problem)]
    return [canonical_remote(url, argument=argument) for url in urls or (element,)]


def _repository(tool: Tool, arguments: JsonObject, paths: Paths, located: dict[str, Location]) -> str | None:
    """The folder a git tool works in: its first path argument, else the workspace."""
    names = [name for name, roles in (tool.roles or {}).items() if set(roles.default) & set(PATH_ROLES)]
    names += [name for name in ("repo_path", "path", "cwd", "directory", "folder") if name in arguments]
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            location = located.get(value) or paths.locate(value)
            return location.real if location.problem is None else None
    return paths.locate(".").real or None


def _text(element: Json) -> str:
    return element if isinstance(element, str) else repr(element)


MAX_CONCURRENT_GIT = 8
"""One repository where git hangs must not block the others, and a burst of calls must not start too many processes."""
MAX_BYTES = 262_144
"""Limit of the whole configuration. A repository with a hundred remotes uses a tenth of it."""


class Resolver:
    """Resolves what arguments refer to. Runs git only if an argument is a remote of a repository."""

    def __init__(self, *, git: str = "git", timeout_seconds: float = 2.0) -> None:
        self._git = git
        self._timeout_seconds = timeout_seconds
        self._git_slots = asyncio.Semaphore(MAX_CONCURRENT_GIT)

    async def targets(self, tool: Tool, arguments: JsonObject, paths: Paths) -> tuple[Target, ...]:
        """Everything the arguments refer to; a remote that cannot be resolved has a `problem`."""
        found = await self._resolved(tool, arguments, paths)
        carried = [
            target for target in found if isinstance(target, PathTarget) and _is_carried(target, found)
        ]
        if not carried:
            return found
        closed = await asyncio.to_thread(_closed_below, carried, paths)
        return tuple(_with_closed(target, closed) for target in found)

    async def _resolved(self, tool: Tool, arguments: JsonObject, paths: Paths) -> tuple[Target, ...]:
        recorder = _RemoteRecorder()
        targets = targets_of(tool, arguments, paths, remotes=recorder)
        if not recorder.folders:
            return targets
        async with self._git_slots:
            settings = {folder: await self._settings(folder) for folder in recorder.folders}
        return targets_of(tool, arguments, paths, remotes=SettingsRemotes(settings))

    async def _settings(self, folder: str) -> GitSettings | None:
        try:
            process = await asyncio.create_subprocess_exec(
                self._git, "-C", _nearest_existing_folder(folder), "config", "--includes", "--list", "-z",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:
            return None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                listing = await _read_output(process)
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return None if listing is None else GitSettings.parse(listing.decode("utf-8", "surrogateescape"))


def _nearest_existing_folder(folder: str) -> str:
    """The folder, or the nearest existing one above it: `git clone` may be about to create the folder."""
    return (
        folder
        if os.path.isdir(folder) or folder in ("", "/")
        else _nearest_existing_folder(os.path.dirname(folder))
    )


async def _read_output(process: asyncio.subprocess.Process) -> bytes | None:
    """The whole output of a program; None if it is too large or the program failed."""
    assert process.stdout is not None
    try:
        await process.stdout.readexactly(MAX_BYTES)
    except asyncio.IncompleteReadError as whole:
        return whole.partial if await process.wait() == 0 else None
    return None


class _RemoteRecorder:
    """Records the folders whose remotes are requested, and returns no URLs."""

    def __init__(self) -> None:
        self.folders: dict[str, None] = {}

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        self.folders[folder] = None
        return ()
