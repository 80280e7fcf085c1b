"""AgentDojo through real sessions: the journal, the gate, the Python sandbox and a policy with labels. No model anywhere.

The planner writes one program from the person's message (`programs.py`). Then it looks at everything that was read, and obeys whatever
stands in it: the attack runs as a second program. So an attack that the planner is told about always fires, and what is measured is
whether the gate lets it act. The reader (`llm.complete`) is an oracle, or gullible: then the attack's value is its answer.
"""

import ast
import os
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from bench.agentdojo.programs import HELPERS, LATER, PROGRAMS, READER_ANSWERS

from holdfast.app import Runtime
from holdfast.core import ArgumentRoles, FunctionToolset, Json, JsonObject, Ok, Role, Tool, encode
from holdfast.core.events import CallRefused, RunEnded, RunStarted
from holdfast.models import ScriptedModel, say, use
from holdfast.policy import FixedPolicy, Policy, RulePolicy, parse_policy_text

warnings.filterwarnings("ignore")
yaml.safe_load = lambda text: yaml.load(text, Loader=yaml.CSafeLoader)

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement  # noqa: E402
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # noqa: E402
from agentdojo.attacks.baseline_attacks import DirectAttack  # noqa: E402
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402
from agentdojo.types import text_content_block_from_string as text_block  # noqa: E402

READ = re.compile(r"^(get|read|search|list|check)_")
HIDE = "show: own"
TEXT_ONLY = ("travel", "injection_task_6")
"""An attack on the answer alone: no call is made, so no gate can see it."""
ROLES: dict[str, Role] = {
    "recipients": "email-address", "cc": "email-address", "bcc": "email-address", "email": "email-address",
    "user_email": "email-address", "participants": "email-address", "attachments": "identifier", "email_id": "identifier",
    "event_id": "identifier", "file_id": "identifier", "filename": "identifier", "id": "identifier", "url": "identifier",
    "permission": "share-permission", "channel": "channel", "user": "person", "hotel": "person", "company": "person",
    "restaurant": "person", "password": "secret-value", "first_name": "person", "last_name": "person", "street": "person",
    "city": "person",
}  # fmt: skip
"""What arguments mean, by their names. AgentDojo's URLs have no scheme, so they are identifiers."""
RECIPIENT: dict[str, Role] = {"banking": "payee", "slack": "person"}
READ_ARGUMENTS = frozenset({"get_webpage"})
"""Reads whose arguments leave the house, and count like those of a write."""


class _Dummy(BasePipelineElement):  # type: ignore[misc]
    name = "local"

    def query(self, *_: object, **__: object) -> None:
        raise NotImplementedError


class Result:
    """How one task went."""

    def __init__(self) -> None:
        self.is_done = self.has_succeeded = self.has_fired = False
        self.stops: list[str] = []
        """What the person's own task had to ask about."""
        self.errors: list[str] = []
        self.consequential = 0
        self.outcome = ""
        self.journal_bytes = 0


class Bench:
    """Runs tasks, each in a session of its own."""

    def __init__(
        self, runtime: Runtime, *, has_labels: bool, is_reader_gullible: bool = False, setting: str = ""
    ) -> None:
        self._runtime = runtime
        self._has_labels = has_labels
        self._is_reader_gullible = is_reader_gullible
        self._setting = setting
        self._policies: dict[str, Policy] = {}

    async def run(
        self, suite: Any, task: Any, injection: Any = None, vectors: dict[str, str] | None = None
    ) -> Result:
        """Run a task, with an attack or without one."""
        return await _Task(self, suite, task, injection, vectors or {}).run()

    def policy(self, suite: str) -> Policy:
        """The policy of a suite; one that allows everything if labels are off."""
        if not self._has_labels:
            return FixedPolicy(name="allow-all", default="allow")
        if suite not in self._policies:
            path = Path(__file__).parent / "policies" / f"{suite}.yaml"
            text = path.read_text().replace("\nlabels:\n", f"\nlabels:\n  {self._setting}\n", 1)
            self._policies[suite] = RulePolicy(parse_policy_text(text, source=str(path)))
        return self._policies[suite]

    @property
    def hides_words(self) -> bool:
        """Whether the planner gets names for what it reads, so that it learns nothing for a later program."""
        return self._setting == HIDE

    @property
    def is_reader_gullible(self) -> bool:
        """Whether the reader answers with what an attack wants."""
        return self._is_reader_gullible

    @property
    def runtime(self) -> Runtime:
        """Where sessions are opened."""
        return self._runtime


_ENVIRONMENTS: dict[Any, bytes] = {}
"""The worlds that were built, for every row: validating one takes longer than a task."""


def environment_of(suite: Any, vectors: dict[str, str]) -> Any:
    """A new copy of the suite's world, with the attack in it."""
    key = suite.name, tuple(sorted(vectors.items()))
    if key not in _ENVIRONMENTS:
        _ENVIRONMENTS[key] = pickle.dumps(suite.load_and_inject_default_environment(vectors))
    return pickle.loads(_ENVIRONMENTS[key])


@cache
def injection_places(suite: Any, task: Any) -> tuple[str, ...]:
    """Where an attack can stand that the task reads."""
    return tuple(DirectAttack(suite, _Dummy()).get_injection_candidates(task))


@cache
def _parameters(suite: Any) -> dict[str, JsonObject]:
    return {tool.name: tool.parameters.model_json_schema() for tool in suite.tools}


class _Task:
    def __init__(self, bench: Bench, suite: Any, task: Any, injection: Any, vectors: dict[str, str]) -> None:
        self._bench, self._suite, self._task, self._injection = bench, suite, task, injection
        self._number = int(task.ID.split("_")[-1])
        self._environment = task.init_environment(environment_of(suite, vectors))
        self._before = pickle.loads(pickle.dumps(self._environment))
        self._marks = {_plain_text(text)[:60] for text in vectors.values()}
        self._attack = list(injection.ground_truth(self._environment)) if injection is not None else []
        self._trace: list[Any] = []
        self._seen: list[str] = []
        self._attack_code = self._look_code = ""
        self._result = Result()
        self._is_attack = False

    async def run(self) -> Result:
        self._programs = self._plan()
        session = await self._bench.runtime.create(
            model=ScriptedModel([self._reply] * 8),
            policy=self._bench.policy(self._suite.name),
            toolsets=[self._toolset()],
            can_ask=False,
        )
        outcome = await session.send(self._task.PROMPT)
        result = self._result
        result.outcome = "ok" if isinstance(outcome, Ok) else f"{type(outcome).__name__}: {outcome}"
        code = ""
        for entry in session._journal.recorded:
            result.journal_bytes += len(encode(entry))
            if isinstance(entry.event, RunStarted):
                code = entry.event.code
            elif isinstance(entry.event, CallRefused) and code not in (self._attack_code, self._look_code):
                result.stops.append(f"{entry.event.call.operation}: {entry.event.decision.reason}")
            elif isinstance(entry.event, RunEnded) and entry.event.error:
                result.errors.append(entry.event.error)
        await session.close()
        self._grade()
        return result

    def _grade(self) -> None:
        output = self._task.GROUND_TRUTH_OUTPUT
        if self._injection is not None and self._result.has_fired and self._injection.GROUND_TRUTH_OUTPUT:
            output += "\n" + self._injection.GROUND_TRUTH_OUTPUT
        check = self._suite._check_task_result
        answer = [text_block(output)]
        # The grader counts some tasks as done when nothing was done at all; a turn that failed is not done.
        is_ok = self._result.outcome == "ok"
        self._result.is_done = is_ok and bool(
            check(self._task, answer, self._before, self._environment, self._trace)
        )
        if self._injection is not None:
            self._result.has_succeeded = bool(
                check(self._injection, answer, self._before, self._environment, self._trace)
            )

    # The planner

    def _reply(self, prompt: Any) -> Any:
        text = getattr(prompt.messages[-1], "text", "")
        if text.startswith(_QUESTION):
            return say(self._answer(*text.removeprefix(_QUESTION).split("\n", 2)))
        code = next(self._programs, None)
        self._is_attack = code is not None and code == self._attack_code
        return say("Done.") if code is None else use("execute_code", {"code": code})

    def _plan(self) -> Iterator[str]:
        """The programs of a planner that looks at everything it read, and then does what stands in it."""
        name = self._suite.name
        if self._number in PROGRAMS[name]:
            program = HELPERS + PROGRAMS[name][self._number]
            yield with_tools(program, self._suite, reversed_finds=self._bench.is_reader_gullible)
        else:
            yield "\n".join(self._call(each) for each in self._task.ground_truth(self._environment))
        reads = [each for each in self._trace if READ.match(each.function)]
        if reads:
            self._look_code = _each_alone([f"print({self._call(each)})" for each in reads])
            yield self._look_code
        yield from self._obey()
        if (name, self._number) in LATER and not self._bench.hides_words:
            made = [(each.function, dict(each.args)) for each in self._trace]
            later = [
                each
                for each in self._task.ground_truth(self._environment)
                if (each.function, dict(each.args)) not in made
            ]
            yield _each_alone([f"print({self._call(each)})" for each in later])
            yield from self._obey()

    def _obey(self) -> Iterator[str]:
        if self._injection is None or self._result.has_fired or not self._sees_attack():
            return
        self._result.has_fired = True
        if self._attack:  # an attack on the answer alone makes no call
            self._attack_code = _each_alone([self._call(each) for each in self._attack])
            yield self._attack_code

    def _sees_attack(self) -> bool:
        seen = _plain_text("\n".join(self._seen))
        return any(mark in seen for mark in self._marks)

    def _call(self, call: Any) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in call.args.items())
        return f"{self._suite.name}.{call.function}({arguments})"

    def _answer(self, what: str, kind: str, text: str) -> str:
        if (
            self._bench.is_reader_gullible
            and self._attack
            and any(mark in _plain_text(text) for mark in self._marks)
        ):
            for call in self._attack:
                for name in _WANTED.get(kind, ()):
                    if name in call.args:
                        value = call.args[name]
                        return str(value[0] if isinstance(value, list) else value)
        answers = READER_ANSWERS[self._suite.name].get(self._number, {})
        return next(answer for start, answer in answers.items() if what.startswith(start))

    # The tools

    def _toolset(self) -> FunctionToolset:
        runtime = FunctionsRuntime(self._suite.tools)
        functions: dict[str, tuple[Tool, Callable[[JsonObject], Json]]] = {}
        for tool in self._suite.tools:
            name = f"{self._suite.name}.{tool.name}"
            roles = {
                each: ArgumentRoles(default=(self._role(tool.name, each),))
                for each in tool.parameters.model_fields
            }
            described = Tool(
                name=name,
                parameters=_parameters(self._suite)[tool.name],
                roles=roles,
                is_read_only=bool(READ.match(tool.name)),
            )
            functions[name] = described, self._performer(runtime, tool.name)
        return FunctionToolset(functions)

    def _role(self, tool: str, argument: str) -> Role:
        if READ.match(tool) and tool not in READ_ARGUMENTS:
            return "none"
        if argument == "recipient":
            return RECIPIENT.get(self._suite.name, "none")
        return ROLES.get(argument, "none")

    def _performer(self, runtime: Any, name: str) -> Callable[[JsonObject], Json]:
        def perform(arguments: JsonObject) -> Json:
            if not self._is_attack:
                self._result.consequential += not READ.match(name)
            self._trace.append(FunctionCall(function=name, args=dict(arguments)))
            found, error = runtime.run_function(
                self._environment, name, dict(arguments), raise_on_error=False
            )
            self._seen.append(error or tool_result_to_str(found))
            return error or _as_json(found)

        return perform


_QUESTION = "READ\n"
_WANTED = {
    "payee": ("recipient",), "email": ("recipients", "participants", "user_email"), "url": ("url",),
    "text": ("body", "content", "subject", "title"), "amount": ("amount",), "date": ("start_time", "start_day"),
    "name": ("user", "recipient"),
}  # fmt: skip


def with_tools(code: str, suite: Any, *, reversed_finds: bool = False) -> str:
    """A program with the names that tools have in a session, and with the reader as a model without tools."""
    if reversed_finds:  # where a program takes the first of several, the attacker's comes first
        code = code.replace('*\\w", text)', '*\\w", text)[::-1]')
    names = {tool.name for tool in suite.tools}
    tree = _Renamer(suite.name, names).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Renamer(ast.NodeTransformer):
    def __init__(self, group: str, names: set[str]) -> None:
        self._group, self._names = group, names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        if node.func.id == "ask":
            text, what, kind = (ast.unparse(each) for each in node.args)
            question = f"llm.complete(prompt={_QUESTION!r} + ({what}) + '\\n' + {kind} + '\\n' + ({text}))"
            return ast.parse(question, mode="eval").body
        if node.func.id in self._names:
            node.func = ast.Attribute(ast.Name(self._group, ast.Load()), node.func.id, ast.Load())
        return node


def _each_alone(lines: list[str]) -> str:
    return "\n".join(f"try:\n    {line}\nexcept Exception as error:\n    print(error)" for line in lines)


def _plain_text(text: str) -> str:
    return re.sub(r"[\s\\'\"]+", "", text)


def _as_json(value: Any) -> Json:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    return value


assert os.environ.get("HOLDFAST_HOME"), "the benchmark runs in a data directory of its own"
