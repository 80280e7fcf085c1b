"""Holdfast: a session runtime for AI agents. It gives an agent real tools and keeps you in charge.

    async with holdfast.open(model, workspace="project") as session:
        outcome = await session.send("Tidy up the README.")

Everything a host program needs is here: docs/reference/python.md lists it. Names are loaded at first use, so that
importing the package stays fast. `__init__.pyi` declares them for type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

_SOURCES = {
    "Amount": "holdfast.core",
    "Answer": "holdfast.core",
    "Approver": "holdfast.session",
    "AuditEntry": "holdfast.gate",
    "AuditStats": "holdfast.gate",
    "Budget": "holdfast.gate",
    "Call": "holdfast.core",
    "Capabilities": "holdfast.guests",
    "Change": "holdfast.core",
    "Cycle": "holdfast.core",
    "Decision": "holdfast.core",
    "Diagnostic": "holdfast.session",
    "Engine": "holdfast.guests",
    "Engines": "holdfast.guests",
    "Error": "holdfast.core",
    "Escalation": "holdfast.core",
    "Failed": "holdfast.core",
    "FixedPolicy": "holdfast.policy",
    "FunctionToolset": "holdfast.core",
    "Grant": "holdfast.core",
    "Guest": "holdfast.guests",
    "GuestLimits": "holdfast.guests",
    "Home": "holdfast.store",
    "Json": "holdfast.core",
    "Limits": "holdfast.core",
    "MergeConflict": "holdfast.session",
    "MergePlan": "holdfast.session",
    "Model": "holdfast.models",
    "ModelSettings": "holdfast.models",
    "Needs": "holdfast.core",
    "Nonconverged": "holdfast.core",
    "Ok": "holdfast.core",
    "OnCall": "holdfast.guests",
    "Outcome": "holdfast.core",
    "Parked": "holdfast.core",
    "Performed": "holdfast.core",
    "Policy": "holdfast.policy",
    "Prompt": "holdfast.models",
    "Proposal": "holdfast.world",
    "Proposed": "holdfast.core",
    "RecordedEvent": "holdfast.core.events",
    "Refused": "holdfast.core",
    "Reply": "holdfast.models",
    "Response": "holdfast.core",
    "Returned": "holdfast.core",
    "Run": "holdfast.guests",
    "RunRequest": "holdfast.guests",
    "Runtime": "holdfast.app",
    "Sandbox": "holdfast.guests",
    "ScriptedModel": "holdfast.models",
    "ServerSpec": "holdfast.mcp",
    "Session": "holdfast.session",
    "SessionId": "holdfast.core",
    "SessionOptions": "holdfast.session",
    "Settings": "holdfast.session",
    "Tool": "holdfast.core",
    "Toolset": "holdfast.core",
    "TurnRecord": "holdfast.session",
    "TurnResult": "holdfast.session",
    "Usage": "holdfast.core",
    "create_model": "holdfast.models",
    "load_config": "holdfast.config",
    "load_policy": "holdfast.policy",
    "load_servers": "holdfast.mcp",
    "open": "holdfast.app",
    "parse_limits": "holdfast.core",
    "say": "holdfast.models",
    "to_lisp": "holdfast.guests",
    "use": "holdfast.models",
}
_MODULES = {
    "errors": "holdfast.core.errors",
    "events": "holdfast.core.events",
    "testing": "holdfast.testing",
    "workspace": "holdfast.workspace",
}

__all__ = [*sorted([*_SOURCES, *_MODULES]), "__version__"]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _SOURCES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(_SOURCES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
