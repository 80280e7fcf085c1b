"""A scripted agent: the in-process fake of every external program.

A dictionary stands in for the program's disk, so a conversation survives closing the agent. Conversations are kept by
home, as those of real programs are.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from uuid import uuid4

from holdfast.core import Usage, encode, pluralize
from holdfast.teams.contract import (
    Compaction,
    MemberCapabilities,
    OnCall,
    OpenedConversation,
    TeamMessage,
    TeamReply,
)
from holdfast.teams.errors import MemberLost
from holdfast.teams.members.external_member import ok_reply

AnswerFunction = Callable[[TeamMessage, Sequence[str], OnCall], Awaitable[str]]
"""Answers a message, given every text of the conversation so far, including this one."""


async def echo(message: TeamMessage, received: Sequence[str], on_call: OnCall) -> str:
    """Answer `recall` with every earlier text, and anything else with a numbered echo."""
    if message.text == "recall":
        return f"recall: {encode(list(received[:-1])).decode()}"
    return f"echo[{len(received)}]: {message.text}"


class ScriptedProgram:
    """The installed program: how it answers, and the conversations on its disk."""

    def __init__(
        self, answer: AnswerFunction = echo, *, kind: str = "scripted", can_compact: bool = True
    ) -> None:
        self.can_compact = can_compact
        self.answer = answer
        self.kind = kind
        self.conversations: dict[str, list[str]] = {}
        self.running: set[ScriptedAgent] = set()
        self.max_running = 0

    def agent(self, home: str = "") -> "ScriptedAgent":
        """A process that is not started yet. It finds only the conversations of its own home."""
        return ScriptedAgent(self, home)

    def copy_home(self, home: str, branch: str) -> None:
        """Copy the conversations of one home to another."""
        for key, received in list(self.conversations.items()):
            owner, _, conversation = key.partition("/")
            if owner == home:
                self.conversations[f"{branch}/{conversation}"] = list(received)


class ScriptedAgent:
    """One run of a scripted program."""

    def __init__(self, program: ScriptedProgram, home: str) -> None:
        self._program = program
        self._home = home
        self._key = ""
        self._died = asyncio.Event()
        self.is_alive = False

    @property
    def kind(self) -> str:
        return self._program.kind

    @property
    def capabilities(self) -> MemberCapabilities:
        return MemberCapabilities(gate="every-call", is_idempotent=False)

    async def open(self, conversation: str | None) -> OpenedConversation:
        is_known = conversation is not None and f"{self._home}/{conversation}" in self._program.conversations
        attached = conversation if conversation and is_known else str(uuid4())
        self._key = f"{self._home}/{attached}"
        self._program.conversations.setdefault(self._key, [])
        self._program.running.add(self)
        self._program.max_running = max(self._program.max_running, len(self._program.running))
        self.is_alive = True
        reason = "" if is_known or conversation is None else "its transcript is missing"
        return OpenedConversation(conversation=attached, is_new=not is_known, version="1", reason=reason)

    async def ask(self, message: TeamMessage, on_call: OnCall) -> TeamReply:
        received = self._program.conversations[self._key]
        received.extend([*message.notices, message.text])
        answering = asyncio.ensure_future(self._program.answer(message, tuple(received), on_call))
        dying = asyncio.ensure_future(self._died.wait())
        try:
            await asyncio.wait({answering, dying}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise MemberLost("the scripted agent ended during a message")
            text = answering.result()
        finally:
            for task in (answering, dying):
                task.cancel()
            await asyncio.gather(answering, dying, return_exceptions=True)
        tokens = Usage(input_tokens=len(message.text), output_tokens=len(text), cost_usd=Decimal(0))
        return ok_reply(text, tokens)

    async def compact(self, *, above_tokens: int, estimated_tokens: int) -> Compaction:
        received = self._program.conversations[self._key]
        if sum(map(len, received)) <= above_tokens:
            return "unneeded"
        if not self._program.can_compact:
            return "unable"
        received[:] = [f"summary of {pluralize(len(received), 'message')}"]
        return "done"

    async def start_over(self) -> OpenedConversation:
        return await self.open(None)

    def crash(self) -> None:
        """End as a killed process does."""
        self.is_alive = False
        self._died.set()

    async def close(self) -> None:
        self.is_alive = False
        self._program.running.discard(self)
