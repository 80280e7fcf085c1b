"""If the process of a sandbox dies in the middle of a turn, the turn ends with an error and the session continues."""

import os
import signal

from tests.guests.engines import ECHO, KEY
from tests.guests.test_python_guest import worker_pids

from holdfast.core import Error, FunctionToolset, JsonObject, Ok
from holdfast.guests import python_engine
from holdfast.testing import memory_session


async def test_a_worker_that_dies_is_an_error_of_its_turn_and_the_session_continues() -> None:
    def kill(_: JsonObject) -> str:
        for pid in worker_pids():
            os.kill(pid, signal.SIGKILL)
        return "unused"

    deadly = FunctionToolset({ECHO.name: (ECHO, kill)})
    async with memory_session(engine=python_engine(key=KEY), toolsets=[deadly]) as session:
        assert isinstance(await session.execute("x = 1"), Ok)
        outcome = await session.execute("x = 2\necho.say(text='now')")
        assert isinstance(outcome, Error)
        assert "process" in outcome.message
        after = await session.execute("x")
        assert isinstance(after, Ok)
        assert after.value == 1
        assert [entry.result for entry in session.audit()] == ["ok"], "the call was made and is recorded"
