"""Hosts that programs connect to, each judged as a call of `net.connect` while the program waits.

The connection is held, not the session: a host that the policy escalates is asked about while the program runs. An approval
holds for the whole command that asked, which may connect many times, and a grant covers later commands. Every verdict is on
record.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.commands import HostVerdict
from holdfast.core import (
    AGENT,
    ArgumentRoles,
    Call,
    CallId,
    Clock,
    Decision,
    Escalation,
    EscalationId,
    JsonObject,
    Label,
    Offer,
    Tool,
    Verdict,
    is_covered,
    new_token,
)
from holdfast.core.events import HostJudged, RecordedEvent
from holdfast.core.projection import Projection
from holdfast.gate.authorize import expiry_ms
from holdfast.gate.escalations import Escalations
from holdfast.gate.grants import Grants, find_offers
from holdfast.gate.judge import RECENT_CALLS, Judge, Judgement
from holdfast.store import Journal

NET_CONNECT = Tool(
    name="net.connect",
    description="Let a program in the command sandbox connect to a host.",
    parameters={
        "type": "object",
        "properties": {
            "host": {"type": "string"},
            "port": {"type": "integer"},
            "address": {"type": "string", "description": "where the host is, if that is not public"},
        },
        "required": ["host", "port"],
        "additionalProperties": False,
    },
    roles={
        "host": ArgumentRoles(default=("proxy-domain",)),
        "port": ArgumentRoles(default=("none",)),
        "address": ArgumentRoles(default=("none",)),
    },
)
"""Not a tool that anyone can call: programs ask by connecting."""

CONNECTION_SECONDS = 300.0
"""How long a program waits for an answer about a host, unless the session has its own limit."""

AskPerson = Callable[[], Awaitable[None]]
"""Asks a person here about what waits; returns when it is settled. Other transports may answer first."""


class _Connections(Projection[HostJudged]):
    """The session's last connections, each as often as programs made it."""

    def reset(self) -> None:
        self._last: deque[tuple[str, int]] = deque(maxlen=RECENT_CALLS)

    def apply(self, event: HostJudged, entry: RecordedEvent) -> None:
        if event.verdict == "allow":
            self._last.append((event.host, event.port))

    def counts(self) -> Counter[tuple[str, int]]:
        """How often each host and port was reached."""
        return Counter(self._last)


class HostAccess:
    """Judges the connections of programs."""

    def __init__(
        self,
        *,
        journal: Journal,
        judge: Judge,
        grants: Grants,
        escalations: Escalations,
        clock: Clock,
        escalation_seconds: float | None,
        can_ask: bool,
    ) -> None:
        self._journal = journal
        self._judge = judge
        self._grants = grants
        self._escalations = escalations
        self._clock = clock
        # A program holds its connection open while it waits, so the wait always ends.
        self._escalation_seconds = escalation_seconds or CONNECTION_SECONDS
        self._can_ask = can_ask
        self._connections = _Connections(journal)
        self._asked: Counter[CallId] = Counter()
        self._approved: set[tuple[CallId, str, int, str]] = set()
        """The connections that a person approved for one command."""

    async def judge(
        self, call: Call, host: str, port: int, ask: AskPerson, *, address: str = ""
    ) -> HostVerdict:
        """Decide whether the programs of a call may connect to a host. Waits for a person where the policy escalates.

        With `address`, which is not public, a person is asked unless the policy denies the host. No grant covers that: a
        name that leads to a private address today may lead to another one tomorrow.
        """
        self._asked[call.id] += 1
        arguments: JsonObject = {"host": host, "port": port}
        if address:
            arguments["address"] = address
        made = Call(
            # Below the id of the command, so that it is not counted as a separate call.
            id=CallId(f"{call.id}.{self._asked[call.id]}"),
            operation=NET_CONNECT.name,
            arguments=arguments,
            principal=AGENT,
            labels=(Label(source=f"{call.operation} {call.id}"),),
        )
        judgement = await self._judge.judge_host(NET_CONNECT, made)
        if address and judgement.decision.verdict != "deny":
            judgement = judgement._replace(decision=_private_address(host, address))
        decision = judgement.decision
        verdict: Verdict = decision.verdict
        reason, grant = decision.reason, None
        if verdict == "escalate":
            connection = (call.id, host, port, address)
            covering = None if address else await self._grants.find_covering(judgement.request)
            if connection in self._approved:
                verdict, reason = "allow", "the person approved it for this command"
            elif covering is not None:
                verdict, reason, grant = "allow", "a saved approval covers it", covering.id
            else:
                verdict, reason = await self._ask(judgement, ask)
            if verdict == "allow" and (covering is None or covering.scope == "times"):
                self._approved.add(connection)
        elif verdict == "stage":
            verdict = "allow"  # a connection has nothing to stage
        judged = HostJudged(
            call=call.id,
            host=host,
            port=port,
            verdict=verdict,
            rule=decision.rule,
            reason=reason,
            grant=grant,
        )
        if grant is None:
            self._journal.append_deferred(judged)
        else:
            await self._journal.append(
                judged
            )  # a use of the grant, which must be on record before it is used again
        return HostVerdict(is_allowed=verdict == "allow", reason=reason, rule=decision.rule)

    async def _ask(self, judgement: Judgement, ask: AskPerson) -> tuple[Verdict, str]:
        if not self._can_ask:
            return "deny", "it needs approval and no one can be asked here"
        escalation = await self._escalation(judgement)
        await self._escalations.open(escalation)
        asking = asyncio.ensure_future(ask())
        try:
            ruling = await self._escalations.wait(escalation.id)
        except asyncio.CancelledError:
            await asyncio.shield(self._escalations.expire(escalation.id, "the program no longer waits"))
            raise
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        if ruling.response is not None and ruling.response.arguments is not None:
            return "deny", "the person edited the connection, and a program cannot be given another one"
        if ruling.verdict == "approve":
            return "allow", "the person approved it"
        return "deny", ruling.reason or "the person denied it"

    async def _offers(self, judgement: Judgement) -> tuple[Offer, ...]:
        """What a saved approval could cover, and how many of the last connections it would have covered."""
        call, targets = judgement.request.call, judgement.request.targets
        counts = self._connections.counts()
        recent = [
            (each, await self._judge.resolve(NET_CONNECT, each.arguments), count)
            for (host, port), count in counts.items()
            for each in [msgspec.structs.replace(call, arguments={"host": host, "port": port})]
        ]
        return tuple(
            Offer(
                coverage=coverage,
                covered_calls=sum(
                    count for past, their, count in recent if is_covered(coverage, past, NET_CONNECT, their)
                ),
                counted_calls=counts.total(),
            )
            for coverage in find_offers(call, NET_CONNECT, targets, contents=())
        )

    async def _escalation(self, judgement: Judgement) -> Escalation:
        now_ms = self._clock.now_ms()
        decision: Decision = judgement.decision
        return Escalation(
            id=EscalationId(new_token()),
            call=judgement.request.call,
            decision=decision,
            digest=judgement.digest,
            tool_digest=NET_CONNECT.digest,
            policy_digest=self._judge.policy.digest,
            opened_ms=now_ms,
            expires_ms=expiry_ms(now_ms, self._escalation_seconds, decision),
            targets=judgement.request.targets,
            offers=() if "address" in judgement.request.call.arguments else await self._offers(judgement),
        )


def _private_address(host: str, address: str) -> Decision:
    reason = (
        f"{host} is at {address}, which is not an address of the public internet; "
        "to allow it for good, name the host under [shell] private_hosts in config.toml"
    )
    return Decision(verdict="escalate", rule="private-address", reason=reason, source="gate")
