"""Programs with large data must not block the event loop, which all sessions share."""

import asyncio
import time

import pytest
from tests.guests.lisp.programs import Host, new_guest
from tests.guests.lisp.test_lisp_attacks import ENDS, FILLS

from holdfast.guests.contract import GuestLimits, RunRequest

BOMBS = {
    "reverse": "(define r (range 400000)) (let loop () (reverse r) (loop))",
    "split": '(define s (string-repeat "a " 1000000)) (let loop () (string-split s) (loop))',
    "replace": '(define s (string-repeat "ab" 2000000)) (let loop () (string-replace s "a" "b") (loop))',
    "equal": "(define a (range 400000)) (define b (range 400000)) (let loop () (equal? a b) (loop))",
    "merge": "(define t (reduce (lambda (t i) (put t (str i) i)) {} (range 1000))) (let loop () (merge t t) (loop))",
    "memo": "(define a (range 30000)) (define (f) (memo (list) (length a))) (let loop () (f) (loop))",
    "facts": "(define a (range 90000)) (let loop ((i 0)) (assert (cons i a)) (loop (+ i 1)))",
    "state": "(define a (range 200000))",
    "program": "(list " + "(+ 1 2) " * 30_000 + ")",
    "value": "(range 240000)",
}
SHORT = ("memo", "split")
MAX_SECONDS = 2.0
"""CPU time of this process between two iterations of the loop, most of it garbage collection of millions of pairs.
Other processes do not count, so a busy machine does not matter."""


async def longest_stall(code: str, limits: GuestLimits) -> float:
    """The longest CPU time between two iterations of the loop, while a program runs, is saved and is restored."""
    gaps = [0.0]

    async def measure_gaps() -> None:
        while True:
            before = time.process_time()
            await asyncio.sleep(0.01)  # a delay of 0 would only compete for the interpreter
            gaps.append(time.process_time() - before)

    watching = asyncio.create_task(measure_gaps())
    guest, other = new_guest(), new_guest()
    await guest.run(RunRequest(code=code, limits=limits), Host(files={f"{i:200}": "" for i in range(50)}))
    await other.restore(await guest.snapshot())
    watching.cancel()
    return max(gaps)


@pytest.mark.parametrize("bomb", SHORT)
async def test_large_data_does_not_block_the_loop(bomb: str) -> None:
    assert await longest_stall(BOMBS[bomb], GuestLimits(seconds=0.2)) < MAX_SECONDS


@pytest.mark.soak
@pytest.mark.parametrize("bomb", [*BOMBS, *FILLS, *ENDS])
async def test_no_attack_blocks_the_loop(bomb: str) -> None:
    code = BOMBS.get(bomb) or FILLS.get(bomb) or ENDS[bomb][0]
    assert await longest_stall(code, GuestLimits(seconds=2, calls=10_000)) < MAX_SECONDS
