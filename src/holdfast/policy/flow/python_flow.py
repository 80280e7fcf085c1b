"""The information flow of a Python program. A pure function of its text, the tools, and the variables of earlier programs.

It is sound: an argument is made of nothing else than what is listed. A program that the analysis does not follow, or that is
too large for it, has an unknown flow, and then anything may be in everything.
"""

import ast
import re
from collections.abc import Mapping

from holdfast.core import UNKNOWN, Origin, Origins
from holdfast.policy.flow.atoms import (
    CHOSEN,
    FILE,
    PART,
    PAST_CONTAINER,
    PAST_FUNCTION,
    UNKNOWN_SOURCE,
    WHOLE,
    Bound,
    BuiltinFunction,
    Function,
    Made,
    NamedGroup,
    Read,
    ToolName,
    TooMuchWork,
    Val,
    Written,
)
from holdfast.policy.flow.expressions import Unfollowed
from holdfast.policy.flow.known_names import ALL_BUILTINS, FILE_NAMES
from holdfast.policy.flow.result import Flow, Place, Signature, Site, unknown_flow
from holdfast.policy.flow.scopes import assigned_names
from holdfast.policy.flow.statements import AnalysedProgram
from holdfast.policy.flow.variables import EVERY_OTHER

MAX_CHARACTERS = 60_000
MAX_PASSES = 25
_FIRST_PAST = -10
_FUNCTION = Origin(kind="unknown", operation="()")
"""In the variables of a program: a function, which a later program cannot be followed into."""
_LINE_END = re.compile(rb"\r\n|\r|\n")


def python_flow(code: str, *, tools: Mapping[str, Signature], variables: Mapping[str, Origins]) -> Flow:
    """Analyse a program. `tools` are by the names that it calls them, `variables` are those of earlier programs."""
    if len(code) > MAX_CHARACTERS:
        reason = f"it has more than {MAX_CHARACTERS:,} characters"
    else:
        try:
            return _analyse(code, tools, variables)
        except _NotFollowed as error:
            reason = str(error)
        except Unfollowed as error:
            reason = f"it uses `{error}`"
        except TooMuchWork:
            reason = "it is too large to be followed"
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = f"it cannot be read: {type(error).__name__}"
    return unknown_flow(reason, variables=_left_by_unknown(code, tools, variables))


class _NotFollowed(Exception):
    """The flow is unknown, for a reason."""


def _left_by_unknown(
    code: str, tools: Mapping[str, Signature], variables: Mapping[str, Origins]
) -> dict[str, Origins]:
    """What a program that is not followed leaves: anything in every variable, and functions by the names that it may have replaced."""
    assigned = assigned_names(code) if len(code) <= MAX_CHARACTERS else None
    shadows = frozenset({UNKNOWN, _FUNCTION})
    if assigned is None or _FUNCTION in variables.get(EVERY_OTHER, ()):
        return {EVERY_OTHER: shadows}
    names = assigned | variables.keys()
    groups = {name.partition(".")[0] for name in tools}
    replaced = sorted(name for name in names if name in groups or name in FILE_NAMES or name in ALL_BUILTINS)
    return {EVERY_OTHER: frozenset({UNKNOWN}), **dict.fromkeys(replaced, shadows)}


def _analyse(code: str, tools: Mapping[str, Signature], variables: Mapping[str, Origins]) -> Flow:
    past = _Past(variables)
    program = AnalysedProgram(ast.parse(code), tools=tools, past=past.values)
    for _ in range(MAX_PASSES):
        program.run_pass()
        if program.expressions.rules.calls_unknown:
            raise _NotFollowed("it calls something that an earlier program defined, or that is not known")
        if not program.heap.progress.must_repeat:
            break
    else:
        raise _NotFollowed("it is too entangled to be followed")
    return _Result(code, program, tools, past).flow()


class _Past:
    """Variables of earlier programs as values of this one."""

    def __init__(self, variables: Mapping[str, Origins]) -> None:
        self.origins: dict[int, Origin] = {}
        self.values: dict[str, Val] = {
            name: frozenset({PAST_CONTAINER, *(self._atom(origin) for origin in origins)})
            for name, origins in variables.items()
        }

    def _atom(self, origin: Origin) -> Written | Read | Function:
        how = CHOSEN if origin.is_chosen else WHOLE if origin.is_whole else PART
        match origin.kind:
            case "written":
                return Written("", True)
            case "file":
                return Read(FILE, (), how)
            case "unknown" | "session":
                return PAST_FUNCTION if origin.operation else Read(UNKNOWN_SOURCE, (), how)
            case "read":
                source = _FIRST_PAST - len(self.origins)
                self.origins[source] = Origin(kind="read", operation=origin.operation)
                return Read(source, origin.path, how)


class _Result:
    """Translates what the analysis found into origins."""

    def __init__(
        self, code: str, program: AnalysedProgram, tools: Mapping[str, Signature], past: _Past
    ) -> None:
        self._program = program
        self._tools = tools
        self._past = past
        self._calls = program.expressions.tool_calls.all()
        data = code.encode()
        self._lines = [0, *(match.end() for match in _LINE_END.finditer(data))]
        self._sources: dict[int, Origin] = dict(past.origins)
        for call in self._calls:
            operation = tools[call.tool].operation
            self._sources[call.source] = Origin(
                kind="read", operation=operation, place=self._place(call.node)[0]
            )

    def flow(self) -> Flow:
        """The flow of the program."""
        heap = self._program.heap
        variables = {
            name: self._origins(value, keeps_functions=True)
            for name, value in self._program.variables.of_module().items()
        }
        if EVERY_OTHER in self._past.values:
            variables[EVERY_OTHER] = self._origins(self._past.values[EVERY_OTHER], keeps_functions=True)
        # A container of an earlier run may be held by several variables, so what is added to one is in all.
        shared = self._origins(heap.contents(PAST_CONTAINER), keeps_functions=True)
        for name in self._past.values:
            variables[name] = variables.get(name, frozenset()) | shared
        return Flow(
            sites=self._sites(),
            shown=self._origins(self._program.expressions.tool_calls.shown),
            variables={name: _for_later(origins) for name, origins in variables.items()},
        )

    def _sites(self) -> dict[Place, Site]:
        sites: dict[Place, Site] = {}
        for call in self._calls:
            signature = self._tools[call.tool]
            given = {
                signature.parameters.get(name, name): self._origins(value)
                for name, value in call.arguments.items()
            }
            site = Site(
                operations=frozenset({signature.operation}),
                arguments=given,
                rest=self._origins(call.rest),
                condition=self._origins(call.condition),
            )
            place = self._place(call.node)
            sites[place] = _join(sites[place], site) if place in sites else site
        return sites

    def _origins(self, value: Val, *, keeps_functions: bool = False) -> Origins:
        found: set[Origin] = set()
        for atom in self._program.heap.reachable(value) if keeps_functions else value:
            match atom:
                case Written(text=text):
                    found.add(Origin(kind="written", text=text))
                case Read(source=source, path=path, how=how):
                    found.add(self._read(source, path, how, is_direct=atom in value))
                case Made():
                    pass
                case Function() | Bound() | BuiltinFunction() | NamedGroup() | ToolName():
                    if keeps_functions:
                        found.add(_FUNCTION)
        return frozenset(found)

    def _read(self, source: int, path: tuple[str, ...], how: int, *, is_direct: bool) -> Origin:
        is_chosen, is_whole = how == CHOSEN, how == WHOLE and is_direct
        if source == FILE:
            return Origin(kind="file", is_chosen=is_chosen)
        if source == UNKNOWN_SOURCE:
            return Origin(kind="unknown", is_chosen=is_chosen)
        origin = self._sources[source]
        return Origin(
            kind="read",
            operation=origin.operation,
            path=path,
            is_chosen=is_chosen,
            is_whole=is_whole,
            place=origin.place,
        )

    def _place(self, node: ast.expr) -> Place:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset


def _join(one: Site, other: Site) -> Site:
    names = one.arguments.keys() | other.arguments.keys()
    return Site(
        operations=one.operations | other.operations,
        arguments={name: one.origins_of(name) | other.origins_of(name) for name in names},
        rest=one.rest | other.rest,
        condition=one.condition | other.condition,
    )


def _for_later(origins: Origins) -> Origins:
    """Origins without what is only true of this program: its literals and its places."""
    return frozenset(
        Origin(
            kind=origin.kind,
            operation=origin.operation,
            path=origin.path,
            is_chosen=origin.is_chosen,
            is_whole=origin.is_whole,
        )
        for origin in origins
    )
