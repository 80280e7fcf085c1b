"""The cost of labels: processor time of a call and bytes of its record, under the same rules without and with labels.

The goals: at most 30 microseconds more a call, at most 10 % more bytes, and nothing where no policy asks; and 1 millisecond to
follow the median program.
"""

import ast
import asyncio
import builtins
import statistics
import time

from bench.agentdojo.programs import HELPERS, PROGRAMS
from holdfast.core import (
    EXTERNAL,
    PERSON,
    ArgumentRoles,
    Call,
    CallOrigins,
    FunctionToolset,
    JsonObject,
    Origin,
    SystemClock,
    Tool,
    call_id,
    encode,
)
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import Gate, GateSettings
from holdfast.policy import LexicalPaths, RulePolicy, Signature, parse_policy_text, python_flow
from holdfast.store import MemoryStore

ROUNDS = 40
"""Short rounds of each kind in turn. The least time of a call counts: what others do on this machine only adds to it."""
CALLS = 100
PLAIN = """
policy: plain
rules:
  - {name: read, allow: mail.search}
  - {name: send, allow: mail.send}
  - {name: rest, escalate: "*"}
"""
LABELLED = """
policy: labelled
labels:
  fields: {"mail.*": {own: [id], known: [sender]}}
rules:
  - {name: read, allow: mail.search, planned: any}
  - {name: send, allow: mail.send, from: {email-address: known}}
  - {name: rest, escalate: "*"}
"""
WRITTEN = frozenset({Origin(kind="written", text="hi")})
SENDER = frozenset({Origin(kind="read", operation="mail.search", path=("sender",), is_whole=True)})
TEXT = frozenset({Origin(kind="read", operation="mail.search", path=("body",))})
BODY = "Thank you for your letter of Tuesday, we will look into it and come back to you. " * 3


def main() -> None:
    """Measure, and print the table."""
    figures = asyncio.run(_measure())
    plain, nothing = figures["plain"], figures["no origins"]
    for name, (micros, size) in figures.items():
        print(f"{name:<14}{micros:>9.1f} us of CPU a call{size:>9.0f} bytes a call")
    for name, figure in (
        ("literals", figures["literal"]),
        ("values that were read", figures["read"]),
        ("values that are looked up", figures["looked up"]),
    ):
        print(
            f"{name}: {figure[0] - plain[0]:+.1f} us (goal +30), {100 * (figure[1] / plain[1] - 1):+.1f} % bytes (goal +10)"
        )
    print(f"a policy that does not ask: {nothing[1] - plain[1]:+.0f} bytes")
    times = _follow()
    print(
        f"following a program, of {len(times)}: median {statistics.median(times):.2f} ms of CPU (goal 1), longest {max(times):.1f} ms"
    )


def _follow() -> list[float]:
    """The least time that each program of the AgentDojo tasks takes to follow, in milliseconds of CPU."""
    programs = [HELPERS + code for suite in PROGRAMS.values() for code in suite.values()]
    tools = {
        node.func.id: Signature(
            operation=node.func.id, parameters={each.arg: each.arg for each in node.keywords if each.arg}
        )
        for code in programs
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not hasattr(builtins, node.func.id)
    }
    least = [float("inf")] * len(programs)
    for _ in range(10):
        for number, code in enumerate(programs):
            started = time.process_time()
            python_flow(code, tools=tools, variables={})
            least[number] = min(least[number], (time.process_time() - started) * 1e3)
    return least


async def _measure() -> dict[str, tuple[float, float]]:
    labelled = {"to": WRITTEN, "body": WRITTEN}
    kinds: dict[str, tuple[str, CallOrigins | None]] = {
        "plain": (PLAIN, None),
        "no origins": (PLAIN, CallOrigins(author="own", arguments=labelled)),
        "literal": (LABELLED, CallOrigins(author="own", arguments=labelled)),
        "read": (LABELLED, CallOrigins(author="own", arguments={"to": SENDER, "body": WRITTEN})),
        "looked up": (LABELLED, CallOrigins(author="own", arguments={"to": TEXT, "body": WRITTEN})),
    }
    micros: dict[str, list[float]] = {name: [] for name in kinds}
    sizes: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (policy, origins) in kinds.items():
            spent, sizes[name] = await _round(policy, origins)
            micros[name] += spent
    return {name: (min(micros[name]), sizes[name]) for name in kinds}


async def _round(policy_text: str, origins: CallOrigins | None) -> tuple[list[float], float]:
    policy, clock = RulePolicy(parse_policy_text(policy_text, source="bench")), SystemClock()
    opened = SessionOpened(
        principal=EXTERNAL, folder="/", workspace="/", policy="bench", policy_digest=policy.digest, model=""
    )
    journal = await MemoryStore(clock=clock).create(opened)
    gate = Gate(
        journal=journal,
        policy=policy,
        toolsets=[_mail()],
        paths=LexicalPaths(),
        clock=clock,
        settings=GateSettings(max_repeats=10**6, can_ask=False),
    )
    await journal.append(MessagePosted(turn=1, text="Thank everybody.", principal=PERSON))
    await gate.submit(Call(id=call_id(1, 1), operation="mail.search", arguments={}), origins=origins)
    before = len(journal.recorded)
    arguments: JsonObject = {"to": "ann@example.com", "body": BODY}
    spent: list[float] = []
    for number in range(2, CALLS + 2):
        call = Call(id=call_id(1, number), operation="mail.send", arguments=arguments)
        started = time.process_time()
        await gate.submit(call, origins=origins)
        spent.append((time.process_time() - started) * 1e6)
    size = sum(len(encode(entry)) for entry in journal.recorded[before:])
    return spent, size / CALLS


def _mail() -> FunctionToolset:
    search = Tool(name="mail.search", parameters={"type": "object"}, roles={})
    send = Tool(
        name="mail.send",
        parameters={"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}},
        roles={
            "to": ArgumentRoles(default=("email-address",)),
            "body": ArgumentRoles(default=("email-body",)),
        },
    )
    found = [{"id": "m1", "sender": "ann@example.com", "body": "Hello."}]
    return FunctionToolset(
        {"mail.search": (search, lambda _: list(found)), "mail.send": (send, lambda _: None)}
    )


if __name__ == "__main__":
    main()
