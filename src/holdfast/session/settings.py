"""What a session goes by: model, policy, sandbox, limits. Frozen; `config` reads it from a file."""

from typing import Literal

from holdfast.agent import Mode
from holdfast.core import Limits, Value
from holdfast.guests import GuestLimits, Sandbox
from holdfast.models import ModelSettings


class Settings(Value, forbid_unknown_fields=True):
    """What a session goes by, and what config.toml may say. Every field has a default that is safe to keep."""

    model: str | None = None
    """`provider:name`; $HOLDFAST_MODEL goes before it. None looks for a key in the environment."""
    model_requests: ModelSettings = ModelSettings()
    """How requests are sent to a model: address, timeout, attempts, size of a reply."""
    policy: str = "project"
    """A named policy or a file."""
    sandbox: Sandbox = "python"
    """Where code runs: a Python subset, CPython in WebAssembly, the second only where the first refuses, or Lisp."""
    mode: Mode = "code"
    """How the model acts: by writing Python, or by calling tools one by one."""
    auto_compact: bool = False
    """Summarise older turns by itself when the conversation no longer fits the model; else the turn ends and says so."""
    max_history_messages: int | None = None
    """Give the model only so many messages, from a person's message on; None gives it all."""
    restore_points: Literal["auto", "always", "never"] = "auto"
    """Keep the workspace after each turn so that it can be gone back to. The first one reads and keeps every file once, so
    `auto` leaves a folder of more than 2 GB or 50,000 files alone and says so, as it does with what a turn adds beyond 2 GB."""
    workspace_bytes: int | None = None
    """How much a workspace may hold. A guest that would write more meets an ordinary OSError; None is no limit."""
    workspace_files: int | None = None
    """How many files a workspace may hold."""
    escalation_seconds: float = 300.0
    """How long a call waits for a person."""
    call_seconds: float = 60.0
    """How long a tool may take."""
    budget: Limits = Limits()
    """Of a session."""
    turn_budget: Limits = Limits(steps=50, calls=1000)
    """Of one turn."""
    code: GuestLimits = GuestLimits()
    """Of one run of code in a sandbox; past one of these it is stopped and told which."""
