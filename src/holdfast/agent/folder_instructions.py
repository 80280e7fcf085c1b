"""The instructions of folders below the workspace's top (a nested `AGENTS.md`), which the model gets when it first works there.

Projected from the journal: a session that resumes gives none twice, and one that rewinds or compacts its history gives them
again when the model works in the folder again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.core import Call, JsonObject, Level, split_script
from holdfast.core.errors import PathRefused
from holdfast.core.events import (
    CallIntended,
    EffectsJudged,
    HistoryCompacted,
    InstructionsRead,
    RecordedEvent,
    SessionOpened,
)
from holdfast.core.projection import EventSource, Projection
from holdfast.world import GUEST_ROOTS, relative

MAX_FILES = 16
"""Nested files that the model has at a time."""
_MAX_WORDS = 64
"""Words of one command that may be paths."""
_PATHS = ("path", "source", "destination", "pattern", "cwd")


class InstructionFile(NamedTuple):
    """A file with instructions: its path in the workspace, what the model gets of it, and the digest of the file."""

    path: str
    content: str
    digest: str


ReadFolder = Callable[[str], InstructionFile | None]
"""Reads the instructions of one folder of the workspace; None if it has none that count as the person's."""


class FolderInstructions(
    Projection[SessionOpened | CallIntended | EffectsJudged | InstructionsRead | HistoryCompacted]
):
    """Follows which folders the session works in."""

    def __init__(self, journal: EventSource, *, read: ReadFolder = lambda _: None) -> None:
        self._read = read
        super().__init__(journal)

    def reset(self) -> None:
        self.files: dict[str, int] = {}
        """The files that the model has, each with the turn that brought it."""
        self._roots: tuple[str, ...] = GUEST_ROOTS
        self._reached: dict[str, None] = {}
        """Folders whose instructions are not looked for yet, each after its parent."""
        self._known: set[str] = set()

    def apply(
        self,
        event: SessionOpened | CallIntended | EffectsJudged | InstructionsRead | HistoryCompacted,
        entry: RecordedEvent,
    ) -> None:
        match event:
            case SessionOpened():
                self._roots = (*GUEST_ROOTS, event.workspace) if event.workspace else GUEST_ROOTS
            case CallIntended():
                for path in _paths_of(event.call):
                    self._reach(path)
            case EffectsJudged():
                for judged in event.effects:
                    self._reach(judged.effect.path)
            case InstructionsRead():
                self.files[event.file] = event.turn
                self._look_at(event.file.rpartition("/")[0])
            case HistoryCompacted():
                self.files = {file: turn for file, turn in self.files.items() if turn > event.through}
                self._known = {file.rpartition("/")[0] for file in self.files}
                self._reached = {}

    def unread(self, turn: int, level_of: Callable[[str], Level]) -> list[InstructionsRead]:
        """What the model has to get before it continues. A file that holds words of somebody else stays data."""
        found: list[InstructionsRead] = []
        for folder in tuple(self._reached):
            file = self._read(folder) if len(self.files) + len(found) < MAX_FILES else None
            if file is None or level_of(file.digest) != "own":
                self._look_at(folder)
            else:
                found.append(
                    InstructionsRead(turn=turn, file=file.path, content=file.content, digest=file.digest)
                )
        return found

    def _reach(self, path: str) -> None:
        try:
            names = relative(path, self._roots).split("/")
        except PathRefused:
            return
        for count in range(1, len(names) + 1):
            folder = "/".join(names[:count])
            if folder != "." and folder not in self._known:
                self._reached[folder] = None

    def _look_at(self, folder: str) -> None:
        self._reached.pop(folder, None)
        self._known.add(folder)


def _paths_of(call: Call) -> Iterator[str]:
    """The paths that a call names. Of a command, each word may be one."""
    group, given = call.operation.partition(".")[0], call.arguments
    if group not in ("world", "shell"):
        return
    yield from (path for name in _PATHS if isinstance(path := given.get(name), str))
    if group == "shell":
        folder = f"{given['cwd']}/" if given.get("cwd") else ""
        yield from (word if word.startswith("/") else folder + word for word in _words(given)[:_MAX_WORDS])


def _words(given: JsonObject) -> Sequence[str]:
    match given:
        case {"script": str(script)}:
            return split_script(script).words
        case {"argv": list(argv)}:
            return [word for word in argv if isinstance(word, str)]
        case _:
            return ()
