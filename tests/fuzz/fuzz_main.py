"""Run one fuzz target for a while: `python -m tests.fuzz.fuzz_main TARGET SECONDS [atheris|mutator] [FOLDER]`.

With atheris, coverage guides the search; without it, the random mutator works alone. Either way an input that makes the target
raise, hang or grow is written to FOLDER and ends the run with an error. The last line on stdout is a report in JSON.
"""

import contextlib
import json
import logging
import os
import random
import resource
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

CORPUS = Path(__file__).with_name("corpus")
HANG_SECONDS = 20
"""CPU time of one input."""
MAX_GROWTH_MB = 64
"""Of the memory that stays in use, from the first tenth of a run to its end."""
MAX_RSS_MB = 900
"""Of a run with atheris, which keeps its own corpus and coverage in memory."""


class Hang(BaseException):
    """One input took too long. Not an Exception, so that no target can swallow it."""


def seeds(target: str) -> list[bytes]:
    """The kept inputs of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def main(target: str, seconds: float, engine: str, folder: Path) -> None:
    """Run the target."""
    logging.disable()
    folder.mkdir(parents=True, exist_ok=True)
    if engine == "atheris":
        _with_atheris(target, seconds, folder)
    else:
        _with_mutator(target, seconds, folder)


def _with_mutator(target: str, seconds: float, folder: Path) -> None:
    from tests.fuzz.mutator import mutate
    from tests.fuzz.targets import TARGETS

    run, corpus = TARGETS[target], seeds(target)
    seed = random.SystemRandom().getrandbits(32)
    chance = random.Random(seed)
    signal.signal(signal.SIGPROF, _hang)
    started, runs, early_mb = time.process_time(), 0, 0.0
    current = chance.choice(corpus)
    while (used := time.process_time() - started) < seconds:
        if chance.random() < 0.3:
            current = chance.choice(corpus)
        current = mutate(current, chance, corpus)
        signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
        try:
            run(current)
        except BaseException:
            (folder / f"{target}-{seed}-{runs}").write_bytes(current)
            raise
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        runs += 1
        if early_mb == 0 and used > seconds / 10:
            early_mb = _resident_mb()
    grown = _resident_mb() - early_mb
    _report(target, "mutator", runs, time.process_time() - started, grown)
    if grown > MAX_GROWTH_MB:
        sys.exit(f"{target}: the memory in use grew by {grown:.0f} MB")


def _with_atheris(target: str, seconds: float, folder: Path) -> None:
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from tests.fuzz.mutator import mutate

    with atheris.instrument_imports(include=["holdfast"]):
        from tests.fuzz.targets import TARGETS

    corpus, runs, early_mb = seeds(target), 0, 0.0
    started = time.process_time()

    def run(data: bytes) -> None:
        nonlocal runs, early_mb
        runs += 1
        TARGETS[target](data)
        used = time.process_time() - started
        if early_mb == 0 and used > seconds / 10:
            early_mb = _resident_mb()
        if used > seconds:
            _report(target, "atheris", runs, used, _resident_mb() - early_mb)
            os._exit(0)

    def custom(data: bytes, max_size: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.4:
            return bytes(atheris.Mutate(data, max_size))[:max_size]
        return mutate(data, chance, corpus)[:max_size]

    working = folder / "corpus"
    working.mkdir(exist_ok=True)  # an earlier run of the same folder is continued
    options = [
        f"-artifact_prefix={folder}/{target}-",
        f"-timeout={HANG_SECONDS * 3}",  # of the clock, on a machine that may be busy
        f"-rss_limit_mb={MAX_RSS_MB}",
        "-max_len=60000",
        "-verbosity=0",
        "-print_final_stats=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(working), str(CORPUS / target)], run, custom_mutator=custom)
    atheris.Fuzz()


def _report(target: str, engine: str, runs: int, seconds: float, grown_mb: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report = {
        "target": target,
        "engine": engine,
        "runs": runs,
        "cpu_seconds": round(seconds, 1),
        "peak_mb": round(peak),
        "grown_mb": round(grown_mb, 1),
    }
    print(json.dumps(report), flush=True)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang(f"one input took more than {HANG_SECONDS} seconds")


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = words[2] if len(words) > 2 else "atheris" if find_spec("atheris") else "mutator"
    found = Path(words[3]) if len(words) > 3 else Path("found")
    sys.argv = sys.argv[:1]
    with contextlib.suppress(KeyboardInterrupt):
        main(words[0], float(words[1]), chosen, found)
