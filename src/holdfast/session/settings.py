"""Session settings: model, policy, sandbox, limits. Frozen; `config` reads them from a file."""

from typing import Literal

from holdfast.agent import Mode
from holdfast.commands import ShellSettings
from holdfast.core import Limits, Value
from holdfast.guests import GuestLimits, Sandbox
from holdfast.models import ModelSettings


class Settings(Value, forbid_unknown_fields=True):
    """The settings of a session, which are the keys of config.toml. Every default is safe to keep."""

    model: str | None = None
    """`provider:name`; $HOLDFAST_MODEL overrides it. None looks for a key in the environment."""
    model_requests: ModelSettings = ModelSettings()
    """How requests are sent to a model: address, timeout, attempts, size of a reply."""
    policy: str = "auto"
    """A named policy or a file. `auto` is `project` for a folder of yours, where changes become proposals, and `scratch` for
    a folder that only the session uses, where they are made at once."""
    sandbox: Sandbox = "python"
    """Where code runs: `python` (a subset), `wasi` (CPython in WebAssembly), `auto` (wasi only if python refuses) or `lisp`."""
    mode: Mode = "code"
    """How the model acts: `code` writes Python, `tools` calls tools one by one."""
    instructions: str = ""
    """Instructions of your own, added to the model's system prompt."""
    auto_compact: bool = False
    """Summarize older turns automatically when the conversation exceeds the model's context; else the turn ends with an error."""
    max_history_messages: int | None = None
    """Send the model at most this many messages, starting at a user message; None sends all."""
    restore_points: Literal["auto", "always", "never"] = "auto"
    """Save the workspace after each turn so that it can be rewound. The first restore point reads every file once, so
    `auto` skips a folder of more than 2 GB or 50,000 files and reports it, as it does with what a turn adds beyond 2 GB."""
    workspace_bytes: int | None = 10_000_000_000
    """Maximum size of a workspace. A guest that would exceed it gets an ordinary OSError. Raise it for a larger project."""
    workspace_files: int | None = None
    """Maximum number of files in a workspace."""
    dirs: tuple[str, ...] = ()
    """Folders outside the workspace that agents may use without asking: "~/notes:ro" for reading, "~/lib" for changes as well.
    A policy that denies a call still denies it."""
    escalation_seconds: float | None = None
    """How long a call waits for approval before silence is a denial. Without it a call waits until it is answered."""
    call_seconds: float = 60.0
    """How long a tool call may take."""
    budget: Limits = Limits()
    """Limits of a session. `usd`, `time` and `bytes` are accepted as keys too, and quantities such as "50k" or "5m"."""
    turn_budget: Limits = Limits(steps=50, calls=1000, bytes_written=2_000_000_000)
    """Limits of one turn."""
    notify: Literal["auto", "bell", "off"] = "auto"
    """How a chat tells you that something waits while its terminal does not have the focus: `auto` is a notification where the
    terminal shows one, else the bell."""
    notify_command: tuple[str, ...] = ()
    """A program to run as well, such as ["notify-send", "Holdfast"]. The text is its last argument."""
    shell: ShellSettings = ShellSettings()
    """Programs that the agent runs in the command sandbox: whether, with which limits, and what they may see."""
    code: GuestLimits = GuestLimits()
    """Limits of one run of code in a sandbox. A run that exceeds one is stopped and its error names the limit."""
