"""Large results and arguments: the journal has a preview, a blob has the whole, and a program gets the whole again."""

from collections.abc import Callable

import pytest

from holdfast.core import (
    PERSON,
    BlobRef,
    Call,
    FakeClock,
    FunctionToolset,
    Json,
    JsonObject,
    Parked,
    Response,
    Returned,
    Tool,
    Verdict,
    call_id,
    digest_bytes,
    encode,
)
from holdfast.core.errors import JournalDamaged
from holdfast.core.events import CallIntended, CallRefused, CallSettled, MessagePosted, SessionOpened
from holdfast.gate import Gate, OutputFilter
from holdfast.gate.large_values import decode_blob
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal, MemoryStore, Redactor

TOOL = Tool(
    name="box.put",
    parameters={"type": "object", "properties": {"what": {}}, "required": ["what"]},
    roles={},
)
TEXT = "zwölf Boxkämpfer\n" * 10_000
LIST: Json = [f"{number:06}.txt" for number in range(20_000)]


def put(what: Json = "rope") -> Call:
    return Call(id=call_id(1, 1), operation="box.put", arguments={"what": what})


async def new_journal(store: MemoryStore) -> Journal:
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    return journal


def gate_over(
    store: MemoryStore,
    journal: Journal,
    function: Callable[[JsonObject], Json],
    verdict: Verdict = "allow",
    redactor: Redactor | None = None,
) -> Gate:
    return Gate(
        journal=journal,
        policy=FixedPolicy(default=verdict),
        toolsets=[FunctionToolset({TOOL.name: (TOOL, function)})],
        paths=LexicalPaths(),
        clock=FakeClock(),
        output_filter=OutputFilter(redactor=redactor),
        fetch_blob=store.blob,
    )


def never(_: JsonObject) -> Json:
    raise AssertionError("a recorded call is not executed again")


@pytest.mark.parametrize("result", [TEXT, LIST, {"names": LIST}], ids=["text", "list", "object"])
async def test_f01_a_large_result_is_whole_now_and_after_a_restart(result: Json) -> None:
    store = MemoryStore(clock=FakeClock())
    journal = await new_journal(store)
    answer = await gate_over(store, journal, lambda _: result).submit(put(), can_defer_outcome=True)
    again = await gate_over(store, journal, never).submit(put())
    for each in (answer, again):
        assert isinstance(each, Returned)
        assert each.value == result
    settled = journal.recorded[-1].event
    assert isinstance(settled, CallSettled)
    assert settled.whole is not None
    assert len(encode(settled)) < 20_000
    assert settled.whole.digest in str(settled.result)


async def test_f01_a_text_shares_the_blob_of_a_file_with_the_same_content() -> None:
    store = MemoryStore(clock=FakeClock())
    journal = await new_journal(store)
    await gate_over(store, journal, lambda _: TEXT).submit(put())
    assert await store.blob(digest_bytes(TEXT.encode())) == TEXT.encode()


async def test_f01_a_missing_blob_is_an_error_and_not_a_preview() -> None:
    store = MemoryStore(clock=FakeClock())
    journal = await new_journal(store)
    await gate_over(store, journal, lambda _: TEXT).submit(put())
    with pytest.raises(JournalDamaged):
        await gate_over(MemoryStore(clock=FakeClock()), journal, never).submit(put())


@pytest.mark.parametrize("what", [TEXT, LIST], ids=["text", "list"])
async def test_f01_a_large_argument_is_performed_whole_and_recorded_small(what: Json) -> None:
    store, seen = MemoryStore(clock=FakeClock()), list[Json]()
    journal = await new_journal(store)
    gate = gate_over(store, journal, lambda arguments: seen.append(arguments["what"]))
    await gate.submit(put(what))
    assert seen == [what]
    (intended,) = (e.event for e in journal.recorded if isinstance(e.event, CallIntended))
    assert intended.digest == intended.call.digest == put(what).digest
    assert len(encode(intended)) < 20_000
    assert isinstance(await gate_over(store, journal, never).submit(put(what)), Returned)


async def test_f01_an_approved_large_call_is_shown_and_performed_whole() -> None:
    store, seen = MemoryStore(clock=FakeClock()), list[Json]()
    journal = await new_journal(store)
    gate = gate_over(store, journal, lambda arguments: seen.append(arguments["what"]), "escalate")
    parked = await gate.submit(put(TEXT))
    assert isinstance(parked, Parked)
    (waiting,) = gate.escalations.waiting()
    assert len(encode(waiting)) < 20_000
    assert (await gate.whole_escalation(waiting)).call.arguments == {"what": TEXT}
    await gate.resolve(parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test")
    whole = await gate.escalated_call(call_id(1, 1))
    assert whole is not None
    assert isinstance(await gate.submit(whole), Returned)
    assert seen == [TEXT]


async def test_f01_a_grant_covers_the_whole_argument_and_not_its_preview() -> None:
    store = MemoryStore(clock=FakeClock())
    journal = await new_journal(store)
    gate = gate_over(store, journal, lambda _: None, "escalate")
    parked = await gate.submit(put(TEXT))
    assert isinstance(parked, Parked)
    (waiting,) = gate.escalations.waiting()
    response = Response(verdict="approve", scope="session")
    await gate.resolve(parked.escalation, response, principal=PERSON, transport="test")
    same = Call(id=call_id(1, 2), operation="box.put", arguments={"what": TEXT})
    preview = Call(id=call_id(1, 3), operation="box.put", arguments=waiting.call.arguments)
    assert isinstance(await gate.submit(same), Returned)
    assert isinstance(await gate.submit(preview), Parked)


async def test_f01_a_refused_large_call_is_recorded_small_and_answered_again() -> None:
    store = MemoryStore(clock=FakeClock())
    journal = await new_journal(store)
    gate = gate_over(store, journal, never, "deny")
    first = await gate.submit(put(TEXT))
    assert await gate_over(store, journal, never, "deny").submit(put(TEXT)) == first
    (refused,) = (e.event for e in journal.recorded if isinstance(e.event, CallRefused))
    assert len(encode(refused)) < 20_000


async def test_f01_no_blob_has_a_known_secret() -> None:
    store = MemoryStore(clock=FakeClock())
    journal = await new_journal(store)
    gate = gate_over(store, journal, lambda _: TEXT + "s3cr3t-value", redactor=Redactor("s3cr3t-value"))
    answer = await gate.submit(put("s3cr3t-value" + TEXT))
    assert isinstance(answer, Returned)
    assert answer.value == TEXT + "[redacted]"
    (intended,) = (e.event for e in journal.recorded if isinstance(e.event, CallIntended))
    assert intended.call.large is not None
    for digest in (answer.blob, intended.call.large.blobs["what"].digest):
        assert b"s3cr3t-value" not in await store.blob(digest)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[" * 900 + b"]" * 900, b'["\xff"]', b"[1", b"[NaN]"])
def test_a_blob_that_is_not_a_value_is_damage(content: bytes) -> None:
    with pytest.raises(JournalDamaged):
        decode_blob(content, BlobRef(digest=digest_bytes(content), size=len(content), format="json"))
