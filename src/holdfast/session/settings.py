"""What a session goes by: model, policy, sandbox, limits. Frozen; `config` reads it from a file."""

from typing import Literal

from holdfast.agent import Mode
from holdfast.core import Limits, Value
from holdfast.models import ModelSettings


class Settings(Value, forbid_unknown_fields=True):
    """What a session goes by, and what config.toml may say. Every field has a default that is safe to keep."""

    model: str | None = None
    """`provider:name`; $HOLDFAST_MODEL goes before it. None looks for a key in the environment."""
    asking: ModelSettings = ModelSettings()
    """How a model is asked: address, time limits, attempts, size of a reply."""
    policy: str = "project"
    """A named policy or a file."""
    sandbox: Literal["python", "wasi", "auto"] = "python"
    mode: Mode = "code"
    """How the model acts: by writing Python, or by calling tools one by one."""
    max_tokens: int | None = None
    """Of one reply."""
    escalation_seconds: float = 300.0
    """How long a call waits for a person."""
    call_seconds: float = 60.0
    """How long a tool may take."""
    budget: Limits = Limits()
    """Of a session."""
    turn_budget: Limits = Limits(steps=50, calls=1000)
    """Of one turn."""
