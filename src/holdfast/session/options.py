"""Session options: what the caller chose, else what the session had before, else the settings."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict, get_args

from holdfast.core import Toolset, Value
from holdfast.core.errors import InvalidInput, InvalidPolicy, ModelMissing
from holdfast.core.events import Noted, SessionReconfigured
from holdfast.guests import Engine, Sandbox
from holdfast.models import Model, create_model, resolve_model
from holdfast.policy import AUTO, Policy, load_policy, policy_for_folder
from holdfast.session.approver import Approver
from holdfast.session.settings import Settings
from holdfast.session.status import Status
from holdfast.store import Journal


class SessionOptions(TypedDict, total=False):
    """What the caller of a session may choose. What is omitted or None is kept or taken from the settings."""

    model: Model | str | None
    """A model, or `provider:name`."""
    policy: Policy | str | None
    """A policy, the name of one, a file, or `auto`: the one that fits the folder."""
    sandbox: Sandbox | Engine | None
    """Where code runs: `python`, `wasi`, `auto`, `lisp`, `system`, or an engine of your own."""
    toolsets: Sequence[Toolset]
    """Tools of your own."""
    approver: Approver | None
    """Asks a person about an escalation."""
    instructions: str | None
    """Instructions of your own for the agent, added to the model's system prompt."""
    dirs: Sequence[str]
    """Further folders that the agent may use without asking: `DIR`, or `DIR:ro` for reading only."""
    can_ask: bool
    """Whether anyone can answer an escalation; if not, it is denied at once."""
    needs_model: bool
    """False for a session that only runs code or is only inspected."""


class ResolvedOptions(Value, gc=True):
    """The options with every default filled in."""

    policy: Policy
    policy_name: str
    """The policy as the journal records it: a name, or the absolute path of a file."""
    model: Model | None
    sandbox: str
    """A sandbox by name, or the name of the caller's own engine."""
    is_sandbox_chosen: bool
    """Whether the caller chose it now."""
    engine: Engine | None
    """The caller's own engine."""
    toolsets: Sequence[Toolset]
    approver: Approver | None
    can_ask: bool
    dirs: Sequence[str] = ()
    instructions: str = ""
    closers: Sequence[Callable[[], Awaitable[None]]] = ()
    """Closes what was opened for these options alone."""

    @property
    def model_name(self) -> str:
        """The model as the journal records it; empty if there is none."""
        return self.model.name if self.model is not None else ""


def check_options(options: Mapping[str, object], function: str) -> None:
    """Raise TypeError for an option that does not exist, or has a value of another type: what is silently ignored could be the policy."""
    known = sorted(SessionOptions.__annotations__)
    for name, value in options.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f". Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
        expected, is_valid = _EXPECTED[name]
        if not is_valid(value):
            raise TypeError(f"{function}() takes {expected} as {name!r}, not {value!r:.80}")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_EXPECTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "model": (
        "a model or provider:name",
        lambda given: given is None or hasattr(given, "name") or isinstance(given, str),
    ),
    "policy": (
        "a policy, a name or a file",
        lambda given: given is None or hasattr(given, "name") or isinstance(given, str),
    ),
    "sandbox": (
        "a sandbox by name, or an engine",
        lambda given: given is None or isinstance(given, str) or hasattr(given, "guest"),
    ),
    "toolsets": (
        "a list of toolsets",
        lambda given: _is_list(given) and all(hasattr(each, "perform") for each in given),
    ),
    "approver": ("a coroutine function", lambda given: given is None or callable(given)),
    "instructions": ("a text", lambda given: given is None or isinstance(given, str)),
    "dirs": (
        "a list of folders",
        lambda given: _is_list(given) and all(isinstance(each, str) for each in given),
    ),
    "can_ask": ("True or False", lambda given: isinstance(given, bool)),
    "needs_model": ("True or False", lambda given: isinstance(given, bool)),
}
"""What each option takes, in words and as a test that needs no call of the value."""


def load_session_policy(reference: str, *, policies: Path, owns_folder: bool) -> tuple[str, Policy]:
    """A policy by name, file or `auto`, and the name by which a session records it. Raises InvalidPolicy."""
    wanted = policy_for_folder(is_own=owns_folder) if reference == AUTO else reference
    # By absolute path, so that it is the same policy from whichever folder the session is resumed.
    named = _absolute(wanted)
    return named, load_policy(named, search=(policies,))


def resolve_options(
    chosen: SessionOptions,
    settings: Settings,
    *,
    policies: Path,
    models_folder: Path,
    previous_policy: str = "",
    previous_model: str = "",
    previous_sandbox: str = "",
    owns_folder: bool = False,
    recorded_policy: Policy | None = None,
) -> ResolvedOptions:
    """Load the chosen policy and open the chosen model. Raises InvalidConfig or ModelMissing.

    Without a chosen policy, `recorded_policy` goes on, under its name of before.
    """
    wanted: Policy | str = chosen.get("policy") or recorded_policy or previous_policy or settings.policy
    try:
        named, policy = (
            load_session_policy(wanted, policies=policies, owns_folder=owns_folder)
            if isinstance(wanted, str)
            else (previous_policy if wanted is recorded_policy else wanted.name, wanted)
        )
    except InvalidPolicy as error:
        if wanted != previous_policy or error.source:
            raise
        raise InvalidPolicy(
            f"the session's policy was {wanted!r}, and there is none of that name here",
            hint="if a program made it, the program passes it again (policy=...); or choose another one, with -p",
        ) from error
    given = chosen.get("model")
    is_ours = chosen.get("needs_model", True) and (given is None or isinstance(given, str))
    model: Model | None = None
    if is_ours:
        model = _open_model(str(given or previous_model), settings, models_folder)
    elif chosen.get("needs_model", True) and not isinstance(given, str):
        model = given
    instructions, given_sandbox = chosen.get("instructions"), chosen.get("sandbox")
    return ResolvedOptions(
        policy=policy,
        policy_name=named,
        model=model,
        sandbox=_name(given_sandbox)
        or _named_sandbox(previous_sandbox)
        or _default_sandbox(settings, policy),
        is_sandbox_chosen=given_sandbox is not None,
        engine=given_sandbox if given_sandbox is not None and not isinstance(given_sandbox, str) else None,
        toolsets=chosen.get("toolsets", ()),
        approver=chosen.get("approver"),
        can_ask=chosen.get("can_ask", True),
        dirs=(*settings.dirs, *chosen.get("dirs", ())),
        instructions=settings.instructions if instructions is None else instructions,
        closers=(model.close,) if model is not None and is_ours else (),
    )


def check_sandbox(name: str, policy: Policy) -> Sandbox:
    """The sandbox of this name, if the policy allows code to run there. Raises InvalidInput; no other is substituted."""
    sandbox = _named_sandbox(name)
    if sandbox is None:
        known = ", ".join(get_args(Sandbox))
        raise InvalidInput(f"there is no sandbox {name!r}", hint=f"choose one of {known}")
    check_may_run(sandbox, policy)
    return sandbox


def check_may_run(name: str, policy: Policy) -> None:
    """Raise InvalidInput if the policy does not allow code to run in this sandbox or engine."""
    if not _may_run(name, policy):
        named = ", ".join(policy.sandboxes or ()) or "no sandbox at all"
        raise InvalidInput(
            f"the policy {policy.name!r} allows code to run in {named}, not in {name}",
            hint="choose another sandbox with --sandbox (--lang for exec), or another policy with -p",
        )


async def record_changes(
    journal: Journal, status: Status, resolved: ResolvedOptions, *, keeps_policy: bool = False
) -> None:
    """Record a changed policy, model or sandbox, so that the session keeps it.

    With `keeps_policy`, another content under the same name is another policy too.
    """
    is_other_policy = resolved.policy_name != status.policy
    if keeps_policy and resolved.policy.digest != status.policy_digest:
        is_other_policy = True
    changed = SessionReconfigured(
        policy=resolved.policy_name if is_other_policy else "",
        policy_digest=resolved.policy.digest if is_other_policy else "",
        model=resolved.model_name if resolved.model_name != status.model else "",
        sandbox=resolved.sandbox if resolved.is_sandbox_chosen and resolved.sandbox != status.sandbox else "",
    )
    if not status.policy:
        text = f"imported from another data directory; it now runs under the policy {resolved.policy_name!r}"
        await journal.append(changed, Noted(code="policy-chosen", text=text))
    elif changed.policy or changed.model or changed.sandbox:
        await journal.append(changed)


def _default_sandbox(settings: Settings, policy: Policy) -> Sandbox:
    """The default: the sandbox of the settings if the policy allows it, else the policy's first."""
    if _may_run(settings.sandbox, policy):
        return settings.sandbox
    return next(
        (known for known in get_args(Sandbox) if known in (policy.sandboxes or ())[:1]), settings.sandbox
    )


def _name(sandbox: Sandbox | Engine | None) -> str:
    """The name of a chosen sandbox or engine; empty if none was chosen."""
    if sandbox is None or isinstance(sandbox, str):
        return sandbox or ""
    return sandbox.capabilities.engine


def _may_run(name: str, policy: Policy) -> bool:
    parts = ("python", "wasi") if name == "auto" else (name,)
    return policy.sandboxes is None or set(parts) <= set(policy.sandboxes)


def _named_sandbox(name: str) -> Sandbox | None:
    return next((known for known in get_args(Sandbox) if known == name), None)


def _open_model(name: str, settings: Settings, models_folder: Path) -> Model:
    found = name or resolve_model(os.environ, settings.model)
    if found is None:
        raise ModelMissing(
            "no model is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start a local server",
            hint="choose one with --model provider:name, or try a whole session without a model: holdfast demo",
        )
    return create_model(found, settings=settings.model_requests, models_folder=models_folder)


def _absolute(policy: str) -> str:
    """Record a policy file by its absolute path; a name stays a name, even if a file of that name exists here."""
    is_path = os.sep in policy or Path(policy).suffix != ""
    return str(Path(policy).resolve()) if is_path and Path(policy).is_file() else policy
