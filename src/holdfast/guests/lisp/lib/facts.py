"""The Python part of facts, memos and fixpoints; prelude.lisp combines these procedures."""

import hashlib
from dataclasses import replace

from holdfast.guests.lisp.data import (
    UNBOUND,
    Datum,
    LispOutcome,
    Symbol,
    iterate,
    make_list,
)
from holdfast.guests.lisp.lang.equality import MAX_PARTS, PART_CHARACTERS, Allowance, canonical, signature
from holdfast.guests.lisp.lib.strings import text
from holdfast.guests.lisp.lib.tables import table
from holdfast.guests.lisp.vm.environment import Closure, Level
from holdfast.guests.lisp.vm.image import content_key
from holdfast.guests.lisp.vm.registers import Control, Registers
from holdfast.guests.lisp.vm.state import Artifact, Fact, Tracker

_STEPS_PER_PART = 8
"""The cost of hashing a part of an expression, in steps."""
_MAX_STATE_PARTS = 4 * MAX_PARTS
"""The size of the state that a fixpoint may watch."""


def _assert(machine: Registers, arguments: list[Datum]) -> None:
    """Assert a fact; returns whether it is new."""
    expression, evidence, value = arguments
    allowance = Allowance()
    key = canonical(expression, allowance)
    machine.charge(steps=allowance.used, size=PART_CHARACTERS * allowance.used)
    fact = Fact(expression, evidence, value, machine.now_ms)
    machine.return_value(machine.context.facts.add(key, fact, allowance))


def _is_fact(machine: Registers, arguments: list[Datum]) -> None:
    machine.return_value(machine.context.facts.get(arguments[0]) is not None)


def _fact(machine: Registers, arguments: list[Datum]) -> None:
    fact = machine.context.facts.get(arguments[0])
    if fact is None:
        machine.return_value(None)
        return
    fields = {
        "expr": fact.expression,
        "evidence": fact.evidence,
        "value": fact.value,
        "asserted-at": fact.asserted_ms,
    }
    machine.return_value(fields)


def _facts(machine: Registers, arguments: list[Datum]) -> None:
    """All assertions, in order."""
    facts = machine.context.facts.facts
    machine.charge(steps=len(facts) // 8, size=64 * len(facts))
    machine.return_value(make_list(fact.expression for fact in facts.values()))


def _facts_signature(machine: Registers, arguments: list[Datum]) -> None:
    allowance = Allowance(_MAX_STATE_PARTS)
    digest = machine.context.facts.signature(allowance)
    machine.charge(steps=allowance.used)
    machine.return_value(digest)


def _signature(machine: Registers, arguments: list[Datum]) -> None:
    """A digest of the watched state of a body: facts, bindings, artifacts and files."""
    thunk, watched, world = arguments
    assert isinstance(thunk, Closure)
    names = {item.name if isinstance(item, Symbol) else item for item in iterate(watched)}
    texts = []
    allowance = Allowance(_MAX_STATE_PARTS)
    if "facts" in names:
        texts.append(f"facts {machine.context.facts.signature(allowance)}")
    if "bindings" in names:
        texts += _bindings(thunk, allowance)
    if "artifacts" in names:
        texts.append(f"artifacts {signature([key for key, _ in machine.state.artifacts.entries()])}")
    if "world" in names:
        texts.append(f"world {world}")
    machine.charge(steps=len(texts) + allowance.used)
    machine.return_value(signature(texts))


def _bindings(thunk: Closure, allowance: Allowance) -> list[str]:
    """Every variable in scope of a body with its value; procedures are not distinguished."""
    texts = []
    frame, scope = thunk.frame, thunk.template.scope
    for depth, level in enumerate(scope):
        if frame is None:  # the top level
            break
        texts += [f"{depth} {line}" for line in _level(level, frame[1:], allowance)]
        frame = frame[0]
    for name, value in thunk.template.root.defined().items():
        texts.append(f"top {name} {canonical(value, allowance, is_procedure_opaque=True)}")
    return texts


def _level(level: Level, values: list[Datum], allowance: Allowance) -> list[str]:
    return [
        f"{name} {canonical(value, allowance, is_procedure_opaque=True)}"
        for name, value in zip(level.names, values, strict=True)
        if value is not UNBOUND
    ]


def _ok_after(machine: Registers, arguments: list[Datum]) -> None:
    """The outcome of a fixpoint that converged."""
    machine.return_value(LispOutcome("ok", {"value": arguments[0], "iterations": arguments[1]}))


def _expression_key(machine: Registers, arguments: list[Datum]) -> None:
    """A digest of an expression and the values of its variables."""
    digest, parts = content_key(arguments)
    machine.charge(steps=_STEPS_PER_PART * parts)
    machine.return_value(digest)


def _artifact_key(expression: str, dependencies: dict[str, str]) -> str:
    joined = "|".join(f"{path}:{fingerprint}" for path, fingerprint in sorted(dependencies.items()))
    return hashlib.sha256(f"{expression}\n{joined}".encode()).hexdigest()


def _fingerprints(datum: Datum) -> dict[str, str]:
    return {path: text(fingerprint) for path, fingerprint in table(datum).items()}


def _memo_has(machine: Registers, arguments: list[Datum]) -> None:
    key = _artifact_key(text(arguments[0]), _fingerprints(arguments[1]))
    machine.return_value(machine.state.artifacts.has(key))


def _memo_find(machine: Registers, arguments: list[Datum]) -> None:
    """A list with the value, or #f; counts a hit or a miss."""
    artifact = machine.state.artifacts.get(_artifact_key(text(arguments[0]), _fingerprints(arguments[1])))
    if artifact is None:
        machine.state.artifacts.misses += 1
        machine.return_value(False)
        return
    machine.state.artifacts.hits += 1
    machine.return_value(make_list([artifact.value]))


def _memo_missed(machine: Registers, arguments: list[Datum]) -> None:
    machine.state.artifacts.misses += 1
    machine.return_value(None)


def _memo_put(machine: Registers, arguments: list[Datum]) -> None:
    expression, dependencies, value = text(arguments[0]), _fingerprints(arguments[1]), arguments[2]
    key = _artifact_key(expression, dependencies)
    machine.state.artifacts.put(key, Artifact(expression, dependencies, value))
    machine.return_value(value)


def _memo_candidates(machine: Registers, arguments: list[Datum]) -> None:
    """The dependencies of each artifact of an expression, newest first."""
    found = machine.state.artifacts.of_expression(text(arguments[0]))
    machine.return_value(make_list(dict(artifact.dependencies) for _, artifact in found))


def _memo_drop(machine: Registers, arguments: list[Datum]) -> None:
    machine.state.artifacts.drop(_artifact_key(text(arguments[0]), _fingerprints(arguments[1])))
    machine.return_value(None)


def _memo_clear(machine: Registers, arguments: list[Datum]) -> None:
    machine.state.artifacts.clear()
    machine.return_value(None)


def _memo_stats(machine: Registers, arguments: list[Datum]) -> None:
    store = machine.state.artifacts
    counts = {"hits": store.hits, "misses": store.misses, "evictions": store.evictions}
    machine.return_value({"size": len(store), "capacity": store.capacity, **counts})


def _tracking(machine: Registers, arguments: list[Datum]) -> None:
    """Call a procedure and record every file that it reads."""
    tracker = Tracker(machine.context.tracker)
    machine.enter_in_context(replace(machine.context, tracker=tracker), arguments[0])


def _tracked(machine: Registers, arguments: list[Datum]) -> None:
    """The files read so far, with fingerprints."""
    tracker = machine.context.tracker
    machine.return_value(dict(tracker.dependencies) if tracker is not None else {})


def _must_note(machine: Registers, arguments: list[Datum]) -> None:
    """Whether an enclosing memo has not recorded this file yet."""
    tracker = machine.context.tracker
    machine.return_value(tracker is not None and not tracker.knows(text(arguments[0])))


def _note(machine: Registers, arguments: list[Datum]) -> None:
    """Make the enclosing memos depend on these files with these fingerprints."""
    if machine.context.tracker is not None:
        for path, fingerprint in _fingerprints(arguments[0]).items():
            machine.context.tracker.note(path, fingerprint)
    machine.return_value(None)


FACT_PROCEDURES = (
    Control("%assert", _assert, 3, 3),
    Control("%fact?", _is_fact, 1, 1),
    Control("%fact", _fact, 1, 1),
    Control("%facts", _facts, 0, 0),
    Control("%facts-signature", _facts_signature, 0, 0),
    Control("%signature", _signature, 3, 3),
    Control("%ok-after", _ok_after, 2, 2),
    Control("%expression-key", _expression_key, 2, 2),
    Control("%memo-has?", _memo_has, 2, 2),
    Control("%memo-find", _memo_find, 2, 2),
    Control("%memo-missed", _memo_missed, 0, 0),
    Control("%memo-put", _memo_put, 3, 3),
    Control("%memo-candidates", _memo_candidates, 1, 1),
    Control("%memo-drop", _memo_drop, 2, 2),
    Control("%memo-clear", _memo_clear, 0, 0),
    Control("%memo-stats", _memo_stats, 0, 0),
    Control("%tracking", _tracking, 1, 1),
    Control("%tracked", _tracked, 0, 0),
    Control("%must-note?", _must_note, 1, 1),
    Control("%note", _note, 1, 1),
)
