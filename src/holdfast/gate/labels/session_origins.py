"""What a session has read, shown and received, projected from its journal: the basis for deciding levels.

Nothing here is stored: a resumed, forked or rewound session projects the same events and has the same levels. What came from a
file is a stranger's, whoever it names, unless this data directory signed the file, or one that the person trusts. The latter
knows nothing about contents here, so files and attachments that came with its file stay a stranger's.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.core import PERSON, CallId, Json, JsonObject, Level, Origin, is_person, lowest
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    CodePosted,
    EffectsJudged,
    InstructionsRead,
    MessagePosted,
    OutputRevealed,
    RecordedEvent,
    RunEnded,
    RunStarted,
    SessionOpened,
    SessionReconfigured,
    ToolReturned,
)
from holdfast.core.projection import KNOWN_SIGNERS, THIS_HOME, EventSource, Projection, imported_through
from holdfast.gate.labels.file_labels import FileLabels
from holdfast.gate.labels.session_files import SessionFiles
from holdfast.policy import READER_OPERATIONS, LabelLevels

MAX_RESULTS = 400
"""Results whose values are looked up, newest last."""
MAX_WORDS = 400_000
"""Characters of the person's messages that are kept."""
FILE_GROUP = "world."
COMMAND = "shell.run"
_EXECUTE_CODE = "execute_code"

_Handled = (
    SessionOpened
    | SessionReconfigured
    | MessagePosted
    | CodePosted
    | CallIntended
    | CallSettled
    | EffectsJudged
    | RunStarted
    | RunEnded
    | ToolReturned
    | InstructionsRead
    | OutputRevealed
)


class ReadResult(NamedTuple):
    """A result that the session has read."""

    call: CallId
    operation: str
    arguments: JsonObject
    result: Json


class SessionOrigins(Projection[_Handled]):
    """Who said what, and what was read."""

    def __init__(
        self, journal: EventSource, *, file_labels: FileLabels, instruction_digests: Sequence[str] = ()
    ) -> None:
        self._file_labels = file_labels
        self._instruction_digests = instruction_digests
        self.generation = 0
        """How often a rewind made the session forget."""
        self._foreign_through = imported_through(journal.recorded, trusted=KNOWN_SIGNERS)
        """Up to here, anyone may have written the history."""
        self._elsewhere_through = imported_through(journal.recorded, trusted=THIS_HOME)
        """Up to here, it was written in another data directory, whose levels of contents are not here."""
        # Not part of `reset`: a rewind does not move the files back to another folder.
        self._workspaces: list[str] = []
        super().__init__(journal)

    def reset(self) -> None:
        self.words: list[str] = []
        """The person's messages, in lower case."""
        self.results: list[ReadResult] = []
        self.operations: set[str] = set()
        """Operations whose results the session has."""
        self.variables: dict[str, dict[str, tuple[Origin, ...]] | None] = {}
        """By engine: what its variables are made of; None if that is not known."""
        self._owner = PERSON
        """The person who opened the session: they may be known by name, as the owner of an API key is."""
        self._has_foreign_message = False
        self._shown_runs: Level = "own"
        self._shown_operations: set[str] = set()
        self.read_count = 0
        self._files = SessionFiles(self._file_labels, self._workspaces)
        self._attached: set[str] = set()
        """The digests of files that came with messages."""
        self._instructed = set(self._instruction_digests)
        """The digests of files that the model gets as instructions of the person, who trusts their folder."""
        self.generation += 1
        self._run: RunStarted | None = None
        self._intended: dict[CallId, CallIntended] = {}
        self._foreign_operations: set[str] = set()

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        if entry.seq <= self._foreign_through and not isinstance(event, SessionOpened):
            self._read_foreign(event)
            return
        is_from_elsewhere = entry.seq <= self._elsewhere_through
        match event:
            case SessionOpened():
                self._files.enter(event.workspace)
                is_own = not is_from_elsewhere and is_person(event.principal)
                self._owner = event.principal if is_own else PERSON
            case SessionReconfigured():
                self._files.enter(event.workspace)
            case MessagePosted():
                is_own = event.principal in (PERSON, self._owner)
                self._hear(event.typed_text, is_own=is_own, is_shown=True)
                attached = {*event.quoted, *(each.digest for each in event.attachments)}
                self._show_contents(attached, self._attached, is_known_here=not is_from_elsewhere)
            case CodePosted():
                self._hear(event.code, is_own=event.principal == PERSON, is_shown=False)
                if event.language == "shell":
                    self._shown_operations.add(COMMAND)
            case CallIntended():
                self._intended[event.call.id] = event
            case CallSettled():
                self._settle(event)
            case EffectsJudged():
                self._write_by_program(event)
            case RunStarted():
                self._run = event
            case RunEnded():
                self._end_run(event)
            case InstructionsRead():
                self._show_contents({event.digest}, self._instructed, is_known_here=not is_from_elsewhere)
            case OutputRevealed():
                self._shown_runs = lowest(self._shown_runs, event.level)
            case ToolReturned():
                if event.tool != _EXECUTE_CODE and event.hidden is None:
                    self._shown_operations.add(event.tool.replace("__", ".", 1))

    def record_deferred(self, settled: CallSettled) -> None:
        """Count a result whose record may not be on disk yet: the next call may be made of it."""
        self._settle(settled)

    def author(self, levels: LabelLevels) -> Level:
        """The lowest level of anything that the model has been shown."""
        shown = [self.level_of(operation, (), levels) for operation in self._shown_operations]
        foreign: Level = "stranger" if self._has_foreign_message else "own"
        attached = (self._files.level_of_content(each, levels.workspace) for each in self._attached)
        instructed = map(self.instructions_level, self._instructed)
        return lowest(foreign, self._shown_runs, *shown, *attached, *instructed)

    def instructions_level(self, digest: str) -> Level:
        """The level of a file in a folder that the person trusts: theirs, unless a session wrote it with words of somebody else."""
        return self._files.level_of_content(digest, "own")

    def level_of(self, operation: str, path: tuple[str, ...], levels: LabelLevels) -> Level:
        """The level of a part of the results of an operation."""
        if operation in self._foreign_operations:
            return "stranger"  # a file says what it returned
        if operation in READER_OPERATIONS:
            return self.coarse_level(levels)
        if operation.startswith(FILE_GROUP):
            return self.file_level(levels)
        return levels.level_of(operation, path)

    def file_level(self, levels: LabelLevels) -> Level:
        """The lowest level of a file that the session read."""
        if self._elsewhere_through:
            return "stranger"
        return self._files.level(levels.workspace)

    def coarse_level(self, levels: LabelLevels) -> Level:
        """The lowest level of anything that the session has read: what a program of it can know."""
        read = [self.level_of(each, (), levels) for each in self.operations - READER_OPERATIONS]
        return lowest(self.author(levels), self.file_level(levels), *read)

    def _read_foreign(self, event: _Handled) -> None:
        """An event of a file that anyone may have written: the model sees it, and nothing in it is known."""
        self._has_foreign_message = True
        match event:
            case CallIntended():
                self._foreign_operations.add(event.call.operation)
            case RunStarted():
                self.variables[event.engine] = None
            case _:
                pass

    def _show_contents(self, digests: set[str], shown: set[str], *, is_known_here: bool) -> None:
        """The model was shown whole files. The levels of contents of another data directory are not here."""
        if is_known_here:
            shown.update(digests)
        else:
            self._has_foreign_message = self._has_foreign_message or bool(digests)

    def _hear(self, text: str, *, is_own: bool, is_shown: bool) -> None:
        if not is_own:
            self._has_foreign_message = self._has_foreign_message or is_shown
            return
        self.words.append(text.lower())
        while sum(map(len, self.words)) > MAX_WORDS and len(self.words) > 1:
            self.words.pop(0)

    def _settle(self, event: CallSettled) -> None:
        intended = self._intended.pop(event.call, None)
        if intended is None:
            return
        operation = intended.call.operation
        self.operations.add(operation)
        if event.status == "ok":
            self.read_count += 1
            if operation.startswith(FILE_GROUP):
                self._files.read(operation, intended.call.arguments, event)
            self.results.append(ReadResult(event.call, operation, intended.call.arguments, event.result))
            del self.results[:-MAX_RESULTS]
        facts = intended.decision.facts
        if facts is not None and facts.levels is not None:
            written = facts.levels.arguments
            self._files.write(operation, intended.call.arguments, written, event.changes)

    def _write_by_program(self, event: EffectsJudged) -> None:
        """What a command was given below `own`, or what it found in the workspace, may be in every file that it changes."""
        intended = self._intended.get(event.call)
        facts = intended.decision.facts if intended is not None else None
        if facts is None or facts.levels is None:
            return
        level = lowest(*facts.levels.arguments.values())
        for judged in event.effects:
            self._files.write_by_program(judged.effect.path, judged.effect.digest, level)

    def _end_run(self, event: RunEnded) -> None:
        started, self._run = self._run, None
        if started is None:
            return
        if started.tool_call is not None:
            self._shown_runs = lowest(self._shown_runs, event.shown or "stranger")
        if event.state is not None:
            self.variables[started.engine] = event.variables
