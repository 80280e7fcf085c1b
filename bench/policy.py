"""Deciding one call at 10, 100 and 10,000 rules, with and without paths, beside other policy engines.

Rule n allows reading below `src/mod{n}`; the call reads a file below the last one. Without paths, rule n allows
operation `group{n}.verb`. With commands, rule n allows `program{n} test`; with arguments, the text `task {n}`. Each peer gets the same rules in its own language, prepared as far as possible.

Peers (pip requirement lines):
    agent-os-kernel
    cedarpy
    regopy
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from holdfast.core import Call, JsonObject, Paths, Tool, call_id
from holdfast.policy import (
    KNOWN_TOOLS,
    LexicalPaths,
    PolicyDocument,
    Request,
    Rule,
    RulePolicy,
    targets_of,
)
from holdfast.policy.document import ArgumentTest, CommandTest, PathTest
from holdfast.world import WorldPaths

SIZES = (10, 100, 10_000)
Work = Callable[[], bool]
"""Makes one decision; true if the call is allowed."""


class NotMeasured(Exception):
    """A size at which a peer is not measured."""


def main() -> None:
    """Print the tables."""
    for title, engines in (
        ("a call with a path", WITH_PATHS),
        ("a call without a path", WITHOUT_PATHS),
        ("a command or an argument", COMMANDS_AND_ARGUMENTS),
    ):
        print(f"\n{title}: microseconds of CPU, median (and ratio to Holdfast)")
        print(f"{'':<34}" + "".join(f"{f'{size:,} rules':>22}" for size in SIZES))
        ours = [median(engines["Holdfast"](size)) for size in SIZES]
        for name, prepare in engines.items():
            print(
                f"{name:<34}"
                + "".join(_cell(prepare, size, base) for size, base in zip(SIZES, ours, strict=True))
            )


def _cell(prepare: "Callable[[int], Work]", size: int, base: float) -> str:
    try:
        taken = median(prepare(size))
    except ImportError:
        return f"{'not installed':>22}"
    except NotMeasured:
        return f"{'not tried':>22}"
    return f"{f'{taken:.1f} ({taken / base:.1f}x)':>22}"


def median(work: Work, seconds: float = 0.4) -> float:
    """Microseconds of CPU per decision."""
    assert work(), "the call is allowed by the last rule"
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 5:
        started = time.thread_time()  # CPU time, not wall time: other programs must not count
        work()
        samples.append(time.thread_time() - started)
    return statistics.median(samples) * 1e6


# -- Holdfast

_READ = KNOWN_TOOLS["world.read"]


def _read_policy(size: int) -> RulePolicy:
    rules = (
        Rule(
            name=f"r{n}",
            verdict="allow",
            operations=("world.read",),
            paths=PathTest(roles=("read-path",), globs=(f"src/mod{n}/**",)),
        )
        for n in range(size)
    )
    return RulePolicy(PolicyDocument(name="bench", rules=tuple(rules)))


def _decide_read(size: int, paths: Paths) -> Work:
    policy = _read_policy(size)
    call = Call(id=call_id(1, 1), operation="world.read", arguments={"path": f"src/mod{size - 1}/a/b.py"})

    def work() -> bool:
        targets = targets_of(_READ, call.arguments, paths)
        return policy.judge(Request(call=call, tool=_READ, targets=targets)).verdict == "allow"

    return work


def _holdfast(size: int) -> Work:
    return _decide_read(size, LexicalPaths())


def _holdfast_decision_only(size: int) -> Work:
    policy = _read_policy(size)
    call = Call(id=call_id(1, 1), operation="world.read", arguments={"path": f"src/mod{size - 1}/a/b.py"})
    request = Request(call=call, tool=_READ, targets=targets_of(_READ, call.arguments, LexicalPaths()))
    return lambda: policy.judge(request).verdict == "allow"


def _holdfast_on_disk(size: int) -> Work:
    folder = _FOLDER / f"src/mod{size - 1}/a"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "b.py").touch()
    return _decide_read(size, WorldPaths(_FOLDER, protected=(_FOLDER / "own",)))


def _holdfast_operations(size: int) -> Work:
    rules = tuple(Rule(name=f"r{n}", verdict="allow", operations=(f"group{n}.verb",)) for n in range(size))
    policy = RulePolicy(PolicyDocument(name="bench", rules=rules))
    tool = Tool(name=f"group{size - 1}.verb", roles={})
    call = Call(id=call_id(1, 1), operation=tool.name, arguments={})
    return lambda: policy.judge(Request(call=call, tool=tool)).verdict == "allow"


def _decide(rules: Iterable[Rule], tool: Tool, arguments: JsonObject) -> Work:
    policy = RulePolicy(PolicyDocument(name="bench", rules=tuple(rules)))
    call = Call(id=call_id(1, 1), operation=tool.name, arguments=arguments)

    def work() -> bool:
        targets = targets_of(tool, call.arguments, LexicalPaths())
        return policy.judge(Request(call=call, tool=tool, targets=targets)).verdict == "allow"

    return work


def _holdfast_commands(size: int, script: str = "program{n} test") -> Work:
    tests = (CommandTest(prefixes=((("program" + str(n),), ("test",)),)) for n in range(size))
    rules = (
        Rule(name=f"r{n}", verdict="allow", operations=("shell.run",), commands=test)
        for n, test in enumerate(tests)
    )
    return _decide(rules, KNOWN_TOOLS["shell.run"], {"script": script.format(n=size - 1)})


def _holdfast_script(size: int) -> Work:
    return _holdfast_commands(size, " && ".join(["program{n} test"] * 10))


def _holdfast_arguments(size: int, *, is_pattern: bool = False) -> Work:
    tests = (
        ArgumentTest(argument="intent", patterns=(f"task {n}",))
        if is_pattern
        else ArgumentTest(argument="intent", one_of=(f"task {n}",))
        for n in range(size)
    )
    rules = (
        Rule(name=f"r{n}", verdict="allow", operations=("llm.intent",), arguments=(test,))
        for n, test in enumerate(tests)
    )
    return _decide(rules, KNOWN_TOOLS["llm.intent"], {"intent": f"task {size - 1}"})


_SCRATCH = tempfile.TemporaryDirectory(prefix="holdfast-bench-")
_FOLDER = Path(_SCRATCH.name)

# -- peers


def _needs(module: str) -> None:
    if find_spec(module) is None:
        raise ImportError(module)


def _governance_toolkit(field: str, operator: str, value: str, given: str) -> Callable[[int], Work]:
    def prepare(size: int) -> Work:
        _needs("agent_os")
        from agent_os.policies import PolicyDocument as Document
        from agent_os.policies import PolicyEvaluator

        rules = [
            {
                "name": f"r{n}",
                "condition": {"field": field, "operator": operator, "value": value.format(n=n)},
                "action": "allow",
            }
            for n in range(size)
        ]
        document = Document.model_validate({"name": "b", "rules": rules, "defaults": {"action": "deny"}})
        evaluator = PolicyEvaluator([document])
        context = {"tool_name": "world.read", field: given.format(n=size - 1)}
        return lambda: bool(evaluator.evaluate(context).allowed)

    return prepare


def _cedar(condition: str, given: dict[str, str]) -> Callable[[int], Work]:
    def prepare(size: int) -> Work:
        _needs("cedarpy")
        import cedarpy

        text = "\n".join(
            f"permit(principal, action, resource) when {{ {condition.replace('{n}', str(n))} }};"
            for n in range(size)
        )
        policies = cedarpy.PolicySet.from_str(text)
        entities = cedarpy.Entities.from_json_str("[]")
        context = {key: value.format(n=size - 1) for key, value in given.items()}
        request = {
            "principal": 'A::"a"',
            "action": 'Action::"call"',
            "resource": 'T::"t"',
            "context": context,
        }
        return lambda: bool(cedarpy.is_authorized(request, policies, entities).allowed)

    return prepare


def _rego(condition: str, given: dict[str, str]) -> Callable[[int], Work]:
    def prepare(size: int) -> Work:
        _needs("regopy")
        from regopy import Input, Interpreter

        if size > 1000:
            raise NotMeasured("its compiler cannot handle this many rules")
        rules = "\n".join(f"allow if {{ {condition.replace('{n}', str(n))} }}" for n in range(size))
        rego = Interpreter()
        rego.add_module("bench", f"package bench\nimport rego.v1\ndefault allow := false\n{rules}")
        bundle = rego.build("data.bench.allow", [])
        value = Input({key: value.format(n=size - 1) for key, value in given.items()})

        def work() -> bool:
            rego.set_input(value)
            return bool(rego.query_bundle(bundle).results[0].expressions[0])

        return work

    return prepare


WITH_PATHS: dict[str, Callable[[int], Work]] = {
    "Holdfast": _holdfast,
    "Holdfast, targets at hand": _holdfast_decision_only,
    "Holdfast, paths on disk": _holdfast_on_disk,
    "Agent Governance Toolkit": _governance_toolkit(
        "path", "matches", r"^src/mod{n}/.*", "src/mod{n}/a/b.py"
    ),
    "Cedar": _cedar('context.path like "src/mod{n}/*"', {"path": "src/mod{n}/a/b.py"}),
    "Rego": _rego('startswith(input.path, "src/mod{n}/")', {"path": "src/mod{n}/a/b.py"}),
}
WITHOUT_PATHS: dict[str, Callable[[int], Work]] = {
    "Holdfast": _holdfast_operations,
    "Agent Governance Toolkit": _governance_toolkit("tool_name", "eq", "group{n}.verb", "group{n}.verb"),
    "Cedar": _cedar('context.tool == "group{n}.verb"', {"tool": "group{n}.verb"}),
    "Rego": _rego('input.tool == "group{n}.verb"', {"tool": "group{n}.verb"}),
}
COMMANDS_AND_ARGUMENTS: dict[str, Callable[[int], Work]] = {
    "Holdfast": _holdfast_commands,
    "Holdfast, a script of 10 commands": _holdfast_script,
    "Holdfast, arguments by value": _holdfast_arguments,
    "Holdfast, arguments by pattern": partial(_holdfast_arguments, is_pattern=True),
}


if __name__ == "__main__":
    main()
