"""The contract of an engine, tested over every one: it says that a session has something to do, at least once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.store.sample_events import opened
from tests.worker.conftest import Shared

from holdfast.core import SessionId
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.worker import DEFAULT_QUEUE, Handler, NotNow, post_message

PATIENCE_SECONDS = 60
A, B = SessionId("a"), SessionId("b")


@asynccontextmanager
async def running(
    shared: Shared, handler: Handler, *, places: int = 2, queues: Sequence[str] = (DEFAULT_QUEUE,)
) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(shared.dispatch.run(handler, places=places, stop=stop, queues=queues))
    try:
        yield stop
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def post(shared: Shared, session: SessionId, delay_seconds: float = 0.0) -> None:
    await shared.store.in_transaction(
        lambda transaction: shared.dispatch.post(transaction, [session], delay_seconds=delay_seconds)
    )


async def test_a_posted_job_reaches_a_handler(shared: Shared) -> None:
    done: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        done.append(session)

    await post(shared, A)
    async with running(shared, handle):
        await until(lambda: done == [A])
        await post(shared, B)
        await until(lambda: done == [A, B])
    assert await shared.dispatch.backlog() == 0


async def test_a_job_exists_only_if_its_transaction_is_committed(shared: Shared) -> None:
    session = (await shared.store.create(opened())).session

    async def fail(transaction: object, sessions: Sequence[SessionId]) -> None:
        if shared.url is not None:  # a transaction in memory has nothing to take back
            await shared.dispatch.post(transaction, sessions)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await shared.store.post_request(session, b"{}", post_jobs=fail)
    assert await shared.dispatch.backlog() == 0
    assert await shared.store.requests(session) == []
    with pytest.raises(SessionNotFound):
        await post_message(shared.store, shared.dispatch, SessionId("nobody"), "hello")
    assert await shared.dispatch.backlog() == 0


async def test_a_request_that_is_posted_again_is_kept_once(shared: Shared) -> None:
    session = (await shared.store.create(opened())).session
    for _ in range(2):
        assert await post_message(shared.store, shared.dispatch, session, "hello", id="one") == "one"
    assert [each.id for each in await shared.store.requests(session)] == ["one"]
    await shared.store.remove_request("one")
    await shared.store.remove_request("one")
    assert await shared.store.requests(session) == []


async def test_a_job_is_not_given_before_its_time(shared: Shared) -> None:
    done: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        done.append(session)

    await post(shared, A, delay_seconds=3600)
    await post(shared, B)
    async with running(shared, handle):
        await until(lambda: bool(done))
    assert done == [B]
    assert await shared.dispatch.backlog() == 1


async def test_a_job_that_cannot_be_done_yet_is_given_again(shared: Shared) -> None:
    attempts: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        attempts.append(session)
        if len(attempts) < 3:
            raise NotNow(0.01)

    await post(shared, A)
    async with running(shared, handle):
        await until(lambda: attempts == [A, A, A])
    assert await shared.dispatch.backlog() == 0


async def test_a_job_posted_while_another_of_its_session_runs_is_not_lost(shared: Shared) -> None:
    entered, may_end, done = asyncio.Event(), asyncio.Event(), []

    async def handle(session: SessionId) -> None:
        entered.set()
        await may_end.wait()
        done.append(session)

    await post(shared, A)
    async with running(shared, handle):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await entered.wait()
        await post(shared, A)
        may_end.set()
        await until(lambda: done == [A, A])


async def test_no_more_jobs_run_at_once_than_there_are_places(shared: Shared) -> None:
    at_once = highest = done = 0
    are_two = asyncio.Event()

    async def handle(session: SessionId) -> None:
        nonlocal at_once, highest, done
        at_once += 1
        highest = max(highest, at_once)
        if at_once >= 2:
            are_two.set()
        await are_two.wait()
        await asyncio.sleep(0.02)
        at_once -= 1
        done += 1

    for number in range(8):
        await post(shared, SessionId(f"s{number}"))
    async with running(shared, handle, places=4):
        await until(lambda: done >= 8)  # at least once
    assert 2 <= highest <= 4


async def test_a_stopped_engine_waits_for_its_handlers_and_keeps_the_rest(shared: Shared) -> None:
    entered, may_end, done = asyncio.Event(), asyncio.Event(), []

    async def handle(session: SessionId) -> None:
        entered.set()
        await may_end.wait()
        done.append(session)

    for number in range(4):
        await post(shared, SessionId(f"s{number}"))
    async with running(shared, handle) as stop:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await entered.wait()
        stop.set()
        may_end.set()
    assert 1 <= len(done) <= 2
    assert len(done) + await shared.dispatch.backlog() == 4


async def test_a_job_whose_handler_fails_is_kept_and_the_others_go_on(shared: Shared) -> None:
    done: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        if session == A:
            raise ZeroDivisionError
        done.append(session)

    await post(shared, A)
    async with running(shared, handle):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await shared.dispatch.failed():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await post(shared, B)
        await until(lambda: done == [B])
    assert (await shared.dispatch.backlog(), await shared.dispatch.failed()) == (0, 1)


async def test_a_cancelled_job_is_gone(shared: Shared) -> None:
    await post(shared, A)
    await post(shared, B)
    await shared.dispatch.cancel(A)
    assert await shared.dispatch.backlog() == 1


async def test_requests_that_arrive_together_do_not_affect_each_other(shared: Shared) -> None:
    first, second, third = [(await shared.store.create(opened())).session for _ in range(3)]

    async def fail(transaction: object, sessions: Sequence[SessionId]) -> None:
        raise ZeroDivisionError

    results = await asyncio.gather(
        post_message(shared.store, shared.dispatch, first, "hello"),
        post_message(shared.store, shared.dispatch, SessionId("nobody"), "hello"),
        shared.store.post_request(second, b"{}", post_jobs=fail),
        post_message(shared.store, shared.dispatch, third, "hello"),
        return_exceptions=True,
    )
    assert [type(each) for each in results] == [str, SessionNotFound, ZeroDivisionError, str]
    assert [len(await shared.store.requests(id)) for id in (first, second, third)] == [1, 0, 1]
    assert await shared.dispatch.backlog() == 2


async def test_an_engine_needs_two_places(shared: Shared) -> None:
    with pytest.raises(InvalidInput):
        await shared.dispatch.run(lambda _: asyncio.sleep(0), places=1, stop=asyncio.Event())


async def test_a_worker_gets_jobs_of_its_queues_only(shared: Shared) -> None:
    done: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        done.append(session)

    for session, queue in ((A, "gpu"), (B, "")):
        await shared.store.in_transaction(
            lambda transaction, session=session, queue=queue: shared.dispatch.post(  # type: ignore[misc]
                transaction, [session], queue=queue
            )
        )
    async with running(shared, handle):
        await until(lambda: done == [B])
    waiting = {each.name: each.waiting for each in await shared.dispatch.queues()}
    assert waiting == {"gpu": 1}
    async with running(shared, handle, queues=("gpu", "other")):
        await until(lambda: done == [B, A])
    assert await shared.dispatch.backlog() == 0


async def test_failed_jobs_are_kept_and_given_again_when_an_operator_says_so(shared: Shared) -> None:
    tries: list[SessionId] = []

    async def handle(session: SessionId) -> None:
        tries.append(session)
        if len(tries) == 1:
            raise ValueError("a fault of ours")

    await post(shared, A)
    async with running(shared, handle):
        await until_failed(shared, 1)
        assert await shared.dispatch.retry_failed() == 1
        await until(lambda: tries == [A, A])
    assert await shared.dispatch.failed() == await shared.dispatch.backlog() == 0


async def until_failed(shared: Shared, count: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await shared.dispatch.failed() != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
