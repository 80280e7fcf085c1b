"""Guests: the engines that run untrusted code, behind one contract. An engine loads when its first guest runs."""

from holdfast.guests.auto import AutoEngine
from holdfast.guests.contract import (
    CALL_PLACE,
    Capabilities,
    Engine,
    Guest,
    GuestLimits,
    OnCall,
    Run,
    RunRequest,
    StagedContents,
    check_timeout,
)
from holdfast.guests.engines import Engines, Sandbox
from holdfast.guests.lisp import tree as lisp_tree
from holdfast.guests.lisp_literal import to_lisp
from holdfast.guests.python import python_engine
from holdfast.guests.scripted import ScriptedEngine, script
from holdfast.guests.self_test import Check, self_test
from holdfast.guests.signed_snapshot import SnapshotSigner, signing_key_id
from holdfast.guests.system import (
    Interpreter,
    InterpreterEnd,
    InterpreterGone,
    Interpreters,
    interpreter_argv,
    system_engine,
)
from holdfast.guests.tool_stubs import call_name, parameters, render_stubs

__all__ = [
    "CALL_PLACE",
    "AutoEngine",
    "Capabilities",
    "Check",
    "Engine",
    "Engines",
    "Guest",
    "GuestLimits",
    "Interpreter",
    "InterpreterEnd",
    "InterpreterGone",
    "Interpreters",
    "OnCall",
    "Run",
    "RunRequest",
    "Sandbox",
    "ScriptedEngine",
    "SnapshotSigner",
    "StagedContents",
    "call_name",
    "check_timeout",
    "interpreter_argv",
    "lisp_tree",
    "parameters",
    "python_engine",
    "render_stubs",
    "script",
    "self_test",
    "signing_key_id",
    "system_engine",
    "to_lisp",
]
