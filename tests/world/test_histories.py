"""Whole sessions over random histories: a rewind or a fork restores files, staged changes, chat and budget."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.app import Runtime
from holdfast.core import FakeClock
from holdfast.core.errors import CommitConflict
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

POLICY = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.append": "allow"})
NAMES = ("a", "b", "d/c", "d/e/f")


class Moment(NamedTuple):
    """All that moves together."""

    files: dict[str, tuple[bytes, int]]
    staged: dict[str, str]
    turns: tuple[str, ...]
    calls: int


def moment(session: Session, folder: Path) -> Moment:
    return Moment(
        {
            str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
        {proposal.path: proposal.diff for proposal in session.proposals()},
        tuple(turn.asked for turn in session.history()),
        session.budget.spent.calls,
    )


class Story:
    """One session in an opened project under random operations, with its whole state after each turn."""

    def __init__(self, runtime: Runtime, project: Path, seed: int) -> None:
        self._runtime = runtime
        self._project = project
        self._chance = random.Random(seed)
        self._then: list[Moment] = []

    async def tell(self, steps: int) -> None:
        self._session = await self._runtime.create(workspace=self._project, policy=POLICY, needs_model=False)
        await self._turn()
        for _ in range(steps):
            await self._chance.choice(
                (self._turn, self._turn, self._decide, self._edit, self._rewind, self._fork, self._resume)
            )()
        await self._rewind()

    async def _turn(self) -> None:
        name, word = self._chance.choice(NAMES), self._chance.randrange(1000)
        code = self._chance.choice(
            (
                f"open({name!r}, 'w').write('{word}\\n')",
                f"world.append(path={name!r}, content='{word}\\n')",
                f"import os\nif os.path.exists({name!r}):\n    world.delete(path={name!r})",
                f"world.withdraw()\n{word}",
                str(word),
            )
        )
        await self._session.execute(code)
        self._then = [
            *self._then[: len(self._session.history()) - 1],
            moment(self._session, self._project),
        ]

    async def _decide(self) -> None:
        if self._session.proposals():
            try:
                await (self._session.commit if self._chance.random() < 0.7 else self._session.reject)()
            except CommitConflict:
                await self._session.reject()

    async def _edit(self) -> None:
        path = self._project / self._chance.choice(NAMES)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"by hand {self._chance.randrange(1000)}\n")
        path.chmod(self._chance.choice((0o644, 0o755)))

    async def _rewind(self) -> None:
        turn = self._chance.randrange(1, len(self._then) + 1)
        await self._session.rewind(turn)
        assert moment(self._session, self._project) == self._then[turn - 1]
        self._then = self._then[:turn]

    async def _fork(self) -> None:
        turn = self._chance.randrange(1, len(self._then) + 1)
        before = moment(self._session, self._project)
        fork = await self._runtime.fork(self._session.id, at=turn, policy=POLICY, needs_model=False)
        folder = self._runtime.home.workspace(fork.id)
        assert moment(fork, folder) == self._then[turn - 1]
        await fork.execute("world.append(path='a', content='of the fork')")
        await fork.close()
        assert moment(self._session, self._project) == before

    async def _resume(self) -> None:
        before = moment(self._session, self._project)
        await self._session.close()
        self._session = await self._runtime.resume(self._session.id, policy=POLICY, needs_model=False)
        assert moment(self._session, self._project) == before


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings())
    yield started
    await started.close()


async def tell(runtime: Runtime, folder: Path, seed: int, steps: int) -> None:
    project = folder / f"project-{seed}"
    project.mkdir()
    (project / "a").write_text("there before\n")
    await Story(runtime, project, seed).tell(steps)


@pytest.mark.parametrize("seed", range(4))
async def test_everything_moves_together_in_any_history(runtime: Runtime, tmp_path: Path, seed: int) -> None:
    await tell(runtime, tmp_path, seed, steps=15)


@pytest.mark.soak
async def test_everything_moves_together_in_very_many_histories(runtime: Runtime, tmp_path: Path) -> None:
    for seed in range(100, 250):
        await tell(runtime, tmp_path, seed, steps=25)
