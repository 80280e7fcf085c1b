"""A program survives its process: variables, closures, and a call in the middle of an expression."""

import asyncio
import sys
from pathlib import Path

from tests.guests.lisp.programs import KEY, Host, new_guest, value

from holdfast.core import EscalationId, Parked, Returned
from holdfast.guests.contract import RunRequest

CODE = """
(define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
(define tick (counter))
(tick)
(assert '(seen before))
(define-macro (twice form) `(+ ,form ,form))
(define (ask question) (string-append "<" (call "ask.person" :question question) ">"))
(let ((local "kept")) (list local (tick) (ask "go on?") (tick)))
"""
OTHER_PROCESS = """
import asyncio, json, sys
from pathlib import Path
from holdfast.core import Returned
from holdfast.guests.contract import RunRequest
from holdfast.guests.lisp import lisp_engine

async def main():
    folder, key = Path(sys.argv[1]), bytes.fromhex(sys.argv[2])
    async def on_call(operation, arguments):
        return Returned()
    guest = lisp_engine(key=key).guest()
    request = RunRequest(code=(folder / "code").read_text())
    ended = await guest.resume((folder / "parked").read_bytes(), Returned(value="yes"), request, on_call)
    (folder / "state").write_bytes(await guest.snapshot())
    print(json.dumps([ended.status, ended.value]))

asyncio.run(main())
"""


async def test_a_parked_program_resumes_in_another_process(tmp_path: Path) -> None:
    parked = await new_guest().run(
        RunRequest(code=CODE), Host(answers={"ask.person": Parked(escalation=EscalationId("e"))})
    )
    assert parked.snapshot is not None
    (tmp_path / "code").write_text(CODE)
    (tmp_path / "parked").write_bytes(parked.snapshot)

    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_PROCESS, str(tmp_path), KEY.hex(), stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await other.communicate()
    assert printed == b'["ok", ["kept", 2, "<yes>", 3]]\n'
    guest = new_guest()
    await guest.restore((tmp_path / "state").read_bytes())
    assert await value("(list (tick) (twice 4) (facts))", guest=guest) == [4, 8, [["seen", "before"]]]


async def test_closures_share_their_frame_after_a_restore() -> None:
    guest, other = new_guest(), new_guest()
    await value(
        "(define pair (let ((n 0)) (list (lambda () (set! n (+ n 1))) (lambda () n)))) ((first pair))",
        guest=guest,
    )
    await other.restore(await guest.snapshot())

    assert await value("((first pair)) ((second pair))", guest=other) == 2
    assert await value("((second pair))", guest=guest) == 1


async def test_a_snapshot_contains_no_executable_code() -> None:
    guest = new_guest()
    await value("(define f (lambda (x) (* x 2)))", guest=guest)
    state = await guest.snapshot()

    assert b'{"format":1,' in state  # signed JSON, never a pickle
    assert b"pickle" not in state


async def test_a_parked_run_can_resume_in_the_same_guest() -> None:
    guest = new_guest()
    request = RunRequest(code='(define x (call "ask.person")) x')
    parked = await guest.run(request, Host(answers={"ask.person": Parked(escalation=EscalationId("e"))}))
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(value=[1, 2]), request, Host())

    assert ended.value == [1, 2]
    assert await value("x", guest=guest) == [1, 2]
