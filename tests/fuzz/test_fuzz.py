"""The fuzz targets: the kept corpus always, a few random inputs always, and ten minutes of each target in the long form."""

import gc
import itertools
import json
import os
import random
import subprocess
import sys
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.fuzz.fuzz_main import CORPUS, seeds
from tests.fuzz.mutator import mutate
from tests.fuzz.targets import TARGETS, settle

INPUTS = [(target, path.name) for target in TARGETS for path in sorted((CORPUS / target).iterdir())]
SECONDS = 600
each_target = pytest.mark.parametrize("target", TARGETS)


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(len(seeds(target)) >= 2 for target in TARGETS)


@pytest.mark.parametrize(("target", "name"), INPUTS)
@pytest.mark.promise("P10")
def test_a_kept_input_is_read_or_refused_in_words(target: str, name: str) -> None:
    TARGETS[target]((CORPUS / target / name).read_bytes())


@each_target
def test_a_few_changed_inputs_are_read_or_refused_in_words(target: str) -> None:
    chance, corpus = random.Random(7), seeds(target)
    for _ in range(25):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a provider's library warns about kinds of parts that it does not know
            TARGETS[target](mutate(chance.choice(corpus), chance, corpus))


@each_target
def test_a_target_keeps_nothing_of_its_inputs_in_memory(target: str) -> None:
    passes, corpus = 2, seeds(target)
    gc.freeze()  # a million objects of other tests would be counted each time

    def objects_after(count: int) -> Counter[str]:
        for data in corpus * count:
            TARGETS[target](data)
        gc.collect()
        settle()  # streams that were collected are closed by the event loop
        gc.collect()
        return Counter(type(each).__qualname__ for each in gc.get_objects())

    objects_after(2)  # fills the caches, also those of the counting itself
    counts = [objects_after(1), *(objects_after(passes) for _ in range(3))]
    # What an input leaves behind grows every time. Threads and caches of libraries grow once.
    growths = [after - before for before, after in itertools.pairwise(counts)]
    assert {name for name in growths[0] if all(each[name] >= passes for each in growths)} == set()


@pytest.mark.soak
@pytest.mark.timeout(5 * SECONDS)
@each_target
@pytest.mark.promise("P10")
def test_ten_minutes_of_a_target_end_without_a_crash_a_hang_or_growth(target: str, tmp_path: Path) -> None:
    engine = "atheris" if find_spec("atheris") else "mutator"
    words = ("-W", "ignore", "-m", "tests.fuzz.fuzz_main", target, str(SECONDS), engine, str(tmp_path))
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    found = {path.name: path.read_bytes()[:2000] for path in tmp_path.iterdir() if path.is_file()}
    assert done.returncode == 0, (found, done.stderr[-4000:])
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["cpu_seconds"] >= SECONDS
    assert report["runs"] > 1000
