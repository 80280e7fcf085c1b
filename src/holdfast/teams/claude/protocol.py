"""The lines of the program's protocol: builders for what we send, readers for what it sends. No I/O."""

import re
from decimal import Decimal
from typing import Any

from holdfast.core import Error, Json, JsonObject, Ok, Outcome, Refused, Returned, Usage

GATE = "gate"
HOOK_SECONDS = 3600
"""How long the program waits for our decision on a tool; after that it blocks the tool."""
_COST = re.compile(r"Total cost:\s+\$(\d+(?:\.\d+)?)")


def initialize(request: str) -> JsonObject:
    """The first line: registers our gate as a hook for every tool. A failing hook blocks the tool."""
    hook: JsonObject = {
        "matcher": None,
        "hookCallbackIds": [GATE],
        "onFailure": "block",
        "timeout": HOOK_SECONDS,
    }
    return control(request, {"subtype": "initialize", "hooks": {"PreToolUse": [hook]}})


def control(request: str, body: JsonObject) -> JsonObject:
    """A control request, which is not part of the conversation."""
    return {"type": "control_request", "request_id": request, "request": body}


def user_message(message_id: str, text: str) -> JsonObject:
    """A message. `client_composed` keeps the program from reading paths or running commands in it."""
    return {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "uuid": message_id,
        "client_composed": True,
    }


def slash_command(message_id: str, text: str) -> JsonObject:
    """A command for the program itself, such as `/compact`."""
    return {"type": "user", "message": {"role": "user", "content": text}, "uuid": message_id}


def response(request: Json, body: JsonObject) -> JsonObject:
    """Our response to a request of the program."""
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request, "response": body},
    }


def refusal(request: Json, reason: str) -> JsonObject:
    """An error response; with `onFailure: block` it denies the tool."""
    return {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": request, "error": reason},
    }


def hook_decision(answer: Returned | Refused) -> JsonObject:
    """The gate's answer as the output of a hook."""
    is_allowed = isinstance(answer, Returned)
    reason = "allowed by policy" if isinstance(answer, Returned) else f"{answer.reason} (rule {answer.rule})"
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow" if is_allowed else "deny",
            "permissionDecisionReason": reason,
        }
    }


def belongs_to(result: JsonObject, message_id: str) -> bool:
    """Whether a result ends the turn of this message; the program may send others."""
    many = result.get("user_message_uuids")
    return result.get("user_message_uuid") == message_id or (isinstance(many, list) and message_id in many)


def outcome_of(result: JsonObject) -> Outcome:
    """The outcome of a turn. The subtype reports a provider's failure as success, so `is_error` decides."""
    text = result.get("result")
    if not result.get("is_error") and result.get("subtype") == "success":
        return Ok(value=text if isinstance(text, str) else "")
    errors = result.get("errors")
    reason = "; ".join(str(each) for each in errors) if isinstance(errors, list) and errors else text
    status = result.get("api_error_status")
    code = (
        f"api-{status}" if status else str(result.get("terminal_reason") or result.get("subtype") or "error")
    )
    return Error(message=str(reason or "the program gave no reason")[:2000], code=code.replace("_", "-"))


def text_of(result: JsonObject) -> str:
    """The text of the answer; empty if the turn failed."""
    text = result.get("result")
    return text if isinstance(text, str) and not result.get("is_error") else ""


def usage_of(result: JsonObject, *, cost_before: Decimal | None) -> Usage:
    """The usage of a turn. The program reports a running total of cost, so the total before is subtracted."""
    usage: Any = result.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    cached = _count(counted.get("cache_read_input_tokens"))
    fresh = _count(counted.get("input_tokens")) + _count(counted.get("cache_creation_input_tokens"))
    total = total_cost(result)
    cost = max(Decimal(0), total - cost_before) if total is not None and cost_before is not None else None
    return Usage(
        input_tokens=fresh + cached,
        output_tokens=_count(counted.get("output_tokens")),
        cached_tokens=cached,
        cost_usd=cost,
    )


def total_cost(result: JsonObject) -> Decimal | None:
    """The running total of the conversation; None if the result has none."""
    total = result.get("total_cost_usd")
    return Decimal(str(total)) if isinstance(total, int | float) and not isinstance(total, bool) else None


def reported_cost(reported: JsonObject) -> Decimal | None:
    """The running total of a resumed conversation, which the program reports only as text."""
    found = _COST.search(str(reported.get("text", "")))
    return Decimal(found[1]) if found else None


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
