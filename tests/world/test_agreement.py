"""All worlds agree: random operations on memory, folder and overlays give the same results and the same files."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast.core.errors import HoldfastError
from holdfast.world import FolderWorld, MemoryWorld, StagedWorld, World
from holdfast.world.paths.open_beneath import open_by_walk

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from([b"", b"1", b"longer"])


class Agreement(RuleBasedStateMachine):
    """Worlds that get the same operations."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="agreement-"))
        for name in ("one", "two", "three"):
            (self.folder / name).mkdir()
        self.staged = [
            StagedWorld(MemoryWorld()),
            StagedWorld(FolderWorld(self.folder / "one")),
        ]
        self.worlds: list[World] = [
            MemoryWorld(),
            FolderWorld(self.folder / "two"),
            FolderWorld(self.folder / "three", opener=open_by_walk),
            *self.staged,
        ]

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def agree(self, operation: Callable[[World], object]) -> None:
        answers = [attempt(operation, world) for world in self.worlds]
        assert all(answer == answers[0] for answer in answers), answers

    @rule(path=PATHS, content=CONTENTS, overwrite=st.booleans(), mode=st.sampled_from([None, 0o755]))
    def write(self, path: str, content: bytes, overwrite: bool, mode: int | None) -> None:
        self.agree(lambda world: world.write(path, content, overwrite=overwrite, mode=mode).path)

    @rule(path=PATHS, content=CONTENTS)
    def append(self, path: str, content: bytes) -> None:
        self.agree(lambda world: world.append(path, content).after)

    @rule(path=PATHS)
    def make_folder(self, path: str) -> None:
        self.agree(lambda world: world.make_folder(path))

    @rule(path=PATHS, recursive=st.booleans())
    def delete(self, path: str, recursive: bool) -> None:
        self.agree(lambda world: [change.path for change in world.delete(path, recursive=recursive)])

    @rule(source=PATHS, destination=PATHS)
    def move(self, source: str, destination: str) -> None:
        # Where several things are wrong with a move, which of them is said first is not part of the contract.
        self.agree(
            lambda world: isinstance(attempt(lambda each: each.move(source, destination), world), tuple)
        )

    @rule(path=PATHS)
    def look(self, path: str) -> None:
        self.agree(lambda world: world.read(path))
        self.agree(lambda world: world.exists(path))
        self.agree(lambda world: world.stat(path).kind)
        self.agree(lambda world: [(each.path, each.kind, each.size) for each in world.entries(path)])
        self.agree(lambda world: world.fingerprint(path))

    @rule()
    def commit(self) -> None:
        for staged in self.staged:
            staged.commit()
            assert staged.base.files() == staged.files()

    @invariant()
    def the_files_are_the_same(self) -> None:
        self.agree(lambda world: {path: (world.read(path), world.stat(path).mode) for path in world.files()})
        self.agree(lambda world: world.fingerprint())
        self.agree(lambda world: [(each.path, each.kind) for each in world.entries()])


def attempt(operation: Callable[[World], object], world: World) -> object:
    try:
        return operation(world)
    except HoldfastError as error:
        return error.code
    except OSError as error:
        return error.errno


def agree(examples: int, steps: int) -> None:
    bounds = settings(max_examples=examples, stateful_step_count=steps, deadline=None, database=None)
    run_state_machine_as_test(Agreement, settings=bounds)


def test_all_worlds_agree_on_any_history() -> None:
    agree(examples=10, steps=12)


@pytest.mark.soak
def test_all_worlds_agree_on_very_many_histories() -> None:
    agree(examples=2000, steps=40)
