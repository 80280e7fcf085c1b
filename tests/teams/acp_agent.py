"""A small agent that speaks ACP, run as a program: it does what a letter tells it to, and remembers under its home.

recall            every letter of the conversation so far
use KIND PATH     asks for permission to use a tool on a file; a write follows a yes
sneak KIND PATH   uses a tool without asking
always PATH       asks with nothing to choose but a yes for ever
late PATH         asks for permission when its turn is over
hang              never ends, until it is cancelled
silent            never ends and does not hear a cancel either
die               ends the process
flood             a line that has no end
mode NAME         changes its own mode
environment       the names of its variables
folder            where it works
anything else     echo[n] of it
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import acp
from acp.schema import (
    AgentCapabilities,
    CurrentModeUpdate,
    Implementation,
    ListSessionsResponse,
    PermissionOption,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    ToolCallLocation,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

HOME = Path(os.environ["HOME"])
FLAGS = sys.argv[1:]
_LETTER = re.compile(r"\[(?P<mark>[0-9a-f]{8})(?: left earlier[^\n]*)?\n(?P<text>.*?)\n(?P=mark)\]", re.S)


class Agent:
    """Its conversations are files, one a session."""

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=7 if "--old" in FLAGS else protocol_version,
            agent_info=Implementation(name="parrot", version="1"),
            agent_capabilities=AgentCapabilities(
                load_session="--forgetful" not in FLAGS,
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        if "--locked" in FLAGS:
            raise acp.RequestError.auth_required()
        session = str(uuid4())
        self._keep(session, [])
        return acp.NewSessionResponse(session_id=session, modes=_modes())

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> acp.LoadSessionResponse:
        if not self._file(session_id).exists():
            raise acp.RequestError.resource_not_found(session_id)
        for text in self._heard(session_id):
            await self.client.session_update(session_id, acp.update_agent_message_text(f"replay {text}"))
        return acp.LoadSessionResponse(modes=_modes())

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        found = [SessionInfo(session_id=path.stem, cwd=str(cwd)) for path in HOME.glob("*.heard")]
        return ListSessionsResponse(sessions=found)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        return None

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        self.cancelled = asyncio.Event()
        letters = [found["text"] for found in _LETTER.finditer(prompt[0].text)]
        heard = [*self._heard(session_id), *letters]
        self._keep(session_id, heard)
        said = await self._obey(session_id, heard)
        if said is None:
            return acp.PromptResponse(stop_reason="cancelled")
        middle = len(said) // 2
        for part in (said[:middle], said[middle:]):
            await self.client.session_update(session_id, acp.update_agent_message_text(part))
        used = UsageUpdate(session_update="usage_update", used=len(heard), size=1000)
        await self.client.session_update(session_id, used)
        usage = Usage(total_tokens=12, input_tokens=10, output_tokens=2)
        return acp.PromptResponse(stop_reason="end_turn", usage=usage)

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def _obey(self, session: str, heard: list[str]) -> str | None:
        verb, _, rest = heard[-1].partition(" ")
        match verb:
            case "recall":
                return f"recall: {json.dumps(heard[:-1], separators=(',', ':'))}"
            case "use" | "sneak":
                kind, _, path = rest.partition(" ")
                return await self._use(session, kind, path, is_asking=verb == "use")
            case "always":
                return await self._use(session, "edit", rest, is_asking=True, option="allow_always")
            case "late":
                self.asking_late = asyncio.create_task(self._ask_late(session, rest))
                return "done for now"
            case "hang":
                (HOME / "hanging").touch()
                await self.cancelled.wait()
                return None
            case "silent":
                (HOME / "hanging").touch()
                await asyncio.get_running_loop().create_future()
            case "die":
                os._exit(3)
            case "flood":
                os.set_blocking(1, True)
                while True:
                    os.write(1, b"x" * 65536)
            case "mode":
                update = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=rest)
                await self.client.session_update(session, update)
                await asyncio.get_running_loop().create_future()
            case "environment":
                return " ".join(sorted(os.environ))
            case "folder":
                return os.getcwd()
        return f"echo[{len(heard)}]: {heard[-1]}"

    async def _use(
        self, session: str, kind: Any, path: str, *, is_asking: bool, option: Any = "allow_once"
    ) -> str | None:
        locations = [ToolCallLocation(path=path)] if path else None
        if is_asking:
            tool = ToolCallUpdate(tool_call_id="c1", title=f"{kind} a file", kind=kind, locations=locations)
            options = [PermissionOption(option_id="yes", name="Yes", kind=option)]
            if option == "allow_once":
                options.append(PermissionOption(option_id="no", name="No", kind="reject_once"))
            answer = await self.client.request_permission(session, tool, options)
            if answer.outcome.outcome == "cancelled":
                return None if self.cancelled.is_set() else "cancelled"
            if answer.outcome.option_id != "yes":
                return "denied"
        Path(path).write_text("written")
        done = acp.update_tool_call("c1", title="write", kind=kind, status="completed")
        await self.client.session_update(session, done)
        return "done"

    async def _ask_late(self, session: str, path: str) -> None:
        """Ask when no message is being answered any more."""
        await asyncio.sleep(0.2)
        answer = await self._use(session, "edit", path, is_asking=True)
        draft = HOME / "late.new"
        draft.write_text(str(answer))
        draft.rename(HOME / "late")

    def _file(self, session: str) -> Path:
        return HOME / f"{session}.heard"

    def _heard(self, session: str) -> list[str]:
        heard: list[str] = json.loads(self._file(session).read_text())
        return heard

    def _keep(self, session: str, heard: list[str]) -> None:
        self._file(session).write_text(json.dumps(heard))


def _modes() -> SessionModeState | None:
    if "--modes" not in FLAGS:
        return None
    modes = [SessionMode(id=name, name=name) for name in ("auto", "ask")]
    return SessionModeState(current_mode_id="auto", available_modes=modes)


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Agent()))  # type: ignore[arg-type]
