"""A small ACP agent, run as a program: it does what a message says and keeps its conversations in its home.

It is written from the protocol with only the standard library, so it starts quickly and does not share the defects of
the library on our side.

recall            every message of the conversation so far
briefing          what the message says about an earlier conversation
use KIND PATH     asks permission to use a tool on a file, and writes it if allowed
sneak KIND PATH   uses a tool without asking
always PATH       asks, and offers only "always allow"
late PATH         asks permission after its turn has ended
hang              never ends, until it is cancelled
silent            never ends and ignores a cancellation
die               ends the process
flood             sends an endless line
garble            sends a truncated line and nothing more
chatter           sends a line that is not a message, then an echo
mode NAME         changes its own mode and never ends
relay TEAM TEXT   asks another team over the teams server; the answer in JSON
environment       the names of its variables
folder            its working folder
anything else     echo[n] of it

A prompt that is not a message of a team asks for a summary.
"""

import json
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

HOME = Path(os.environ["HOME"])
FLAGS = sys.argv[1:]
METHOD_NOT_FOUND, AUTHENTICATION_NEEDED, NOT_FOUND = -32601, -32000, -32002
_MESSAGE = re.compile(
    r"\[(?P<mark>[0-9a-f]{8})(?: notice sent earlier[^\n]*)?\n(?P<text>.*?)\n(?P=mark)\]", re.S
)


class Refusal(Exception):
    """An error of the protocol."""


class Agent:
    """Serves one request at a time. Each conversation is a file."""

    servers: list[dict[str, Any]] = []  # noqa: RUF012
    briefing = ""
    late: tuple[str, str] | None = None
    """The session and the file to ask about after the turn has ended."""

    def run(self) -> None:
        while (message := hear()) is not None:
            if "method" in message and "id" in message:
                self._serve(message)

    def _serve(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            method = getattr(self, request["method"].replace("/", "_"), None)
            if method is None:
                raise Refusal(METHOD_NOT_FOUND, "Method not found")
            answer["result"] = method(request["params"])
        except Refusal as refusal:
            answer["error"] = {"code": refusal.args[0], "message": refusal.args[1]}
        say(answer)
        if self.late is not None:
            late, self.late = self.late, None
            self._ask_late(*late)

    def initialize(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocolVersion": 7 if "--old" in FLAGS else given["protocolVersion"],
            "agentInfo": {"name": "parrot", "version": "1"},
            "agentCapabilities": {
                "loadSession": "--forgetful" not in FLAGS,
                "sessionCapabilities": {"list": {}},
                "mcpCapabilities": {"http": True},
            },
        }

    def session_new(self, given: dict[str, Any]) -> dict[str, Any]:
        if "--locked" in FLAGS:
            raise Refusal(AUTHENTICATION_NEEDED, "Authentication required")
        self.servers = given["mcpServers"]
        session = str(uuid4())
        keep(session, [])
        return {"sessionId": session} | modes()

    def session_load(self, given: dict[str, Any]) -> dict[str, Any]:
        self.servers = given["mcpServers"]
        session = given["sessionId"]
        if not file_of(session).exists():
            raise Refusal(NOT_FOUND, "Resource not found")
        for text in heard_in(session):
            chunk(session, f"replay {text}")
        return modes()

    def session_list(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "sessions": [{"sessionId": path.stem, "cwd": given["cwd"]} for path in HOME.glob("*.received")]
        }

    def session_set_mode(self, given: dict[str, Any]) -> dict[str, Any]:
        return {}

    def session_prompt(self, given: dict[str, Any]) -> dict[str, Any]:
        session = given["sessionId"]
        messages = [found["text"] for found in _MESSAGE.finditer(given["prompt"][0]["text"])]
        received = [*heard_in(session), *messages]
        keep(session, received)
        self.briefing = given["prompt"][0]["text"]
        said = self._obey(session, received) if messages else f"they said {', '.join(received)}"
        if said is None:
            return {"stopReason": "cancelled"}
        middle = len(said) // 2
        chunk(session, said[:middle])
        chunk(session, said[middle:])
        used = sum(map(len, received)) if "--long" in FLAGS else len(received)
        update(session, sessionUpdate="usage_update", used=used, size=1000)
        return {
            "stopReason": "end_turn",
            "usage": {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2},
        }

    def _obey(self, session: str, received: list[str]) -> str | None:
        verb, _, rest = received[-1].partition(" ")
        match verb:
            case "recall":
                return f"recall: {json.dumps(received[:-1], separators=(',', ':'), ensure_ascii=False)}"
            case "briefing":
                found = re.search(
                    r"record of your earlier conversation[^\n]*\n(.*?)\n[0-9a-f]{8}\]", self.briefing, re.S
                )
                return found[1] if found else "none"
            case "use" | "sneak":
                kind, _, path = rest.partition(" ")
                return use(
                    session, kind, path, options=("allow_once", "reject_once") if verb == "use" else ()
                )
            case "always":
                return use(session, "edit", rest, options=("allow_always",))
            case "late":
                self.late = session, rest
                return "done for now"
            case "hang":
                (HOME / "hanging").touch()
                while (message := hear()) is not None and message.get("method") != "session/cancel":
                    pass
                return None
            case "silent":
                (HOME / "hanging").touch()
                while hear() is not None:
                    pass
            case "die":
                os._exit(3)
            case "flood":
                while True:
                    os.write(1, b"x" * 65536)
            case "garble":
                print('{"jsonrpc": "2.0", "id": ', flush=True)
                while hear() is not None:
                    pass
            case "chatter":
                print("loading the model ...", flush=True)
            case "mode":
                update(session, sessionUpdate="current_mode_update", currentModeId=rest)
                while hear() is not None:
                    pass
            case "relay":
                return relay(self.servers, *rest.split(" ", 1))
            case "environment":
                return " ".join(sorted(os.environ))
            case "folder":
                return os.getcwd()
        return f"echo[{len(received)}]: {received[-1]}"

    def _ask_late(self, session: str, path: str) -> None:
        """Ask after the message was answered."""
        answer = use(session, "edit", path, options=("allow_once", "reject_once"))
        draft = HOME / "late.new"
        draft.write_text(str(answer))
        draft.rename(HOME / "late")


def use(session: str, kind: str, path: str, *, options: tuple[str, ...]) -> str | None:
    """Write a file if allowed. Without options it does not ask."""
    tool: dict[str, Any] = {"toolCallId": "c1", "title": f"{kind} a file", "kind": kind}
    if path:
        tool["locations"] = [{"path": path}]
    if options:
        offered = [{"optionId": each, "name": each, "kind": each} for each in options]
        params = {"sessionId": session, "toolCall": tool, "options": offered}
        say({"jsonrpc": "2.0", "id": 900, "method": "session/request_permission", "params": params})
        is_cancelled = False
        while (answer := hear()) is not None and answer.get("id") != 900:
            is_cancelled = is_cancelled or answer.get("method") == "session/cancel"
        outcome = answer["result"]["outcome"] if answer is not None else {"outcome": "cancelled"}
        if outcome["outcome"] == "cancelled":
            return None if is_cancelled else "cancelled"
        if not outcome["optionId"].startswith("allow"):
            return None if is_cancelled else "denied"
    Path(path).write_text("written")
    update(session, sessionUpdate="tool_call_update", **(tool | {"title": "write", "status": "completed"}))
    return "done"


def relay(servers: list[dict[str, Any]], team: str, question: str) -> str:
    """Ask another team with the server we were given."""
    if not servers:
        return "no server"
    headers = {each["name"]: each["value"] for each in servers[0]["headers"]}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    arguments = {"team": team, "question": question}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body = json.dumps(call | {"params": {"name": "teams_ask", "arguments": arguments}}).encode()
    with urllib.request.urlopen(urllib.request.Request(servers[0]["url"], body, headers)) as answer:
        return str(answer.read().decode())


def hear() -> dict[str, Any] | None:
    """The next message; None at the end."""
    line = sys.stdin.readline()
    message: dict[str, Any] | None = json.loads(line) if line else None
    return message


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def update(session: str, **fields: Any) -> None:
    params = {"sessionId": session, "update": fields}
    say({"jsonrpc": "2.0", "method": "session/update", "params": params})


def chunk(session: str, text: str) -> None:
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def modes() -> dict[str, Any]:
    if "--modes" not in FLAGS:
        return {}
    offered = [{"id": name, "name": name} for name in ("auto", "ask")]
    return {"modes": {"currentModeId": "auto", "availableModes": offered}}


def file_of(session: str) -> Path:
    return HOME / f"{session}.received"


def heard_in(session: str) -> list[str]:
    received: list[str] = json.loads(file_of(session).read_text())
    return received


def keep(session: str, received: list[str]) -> None:
    file_of(session).write_text(json.dumps(received))


if __name__ == "__main__":
    Agent().run()
