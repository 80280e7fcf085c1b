"""The origins of what one program does: of the arguments of its calls, of what it shows, and of the variables it leaves.

An engine that says where each call stands gets the exact flow of its program. For every other, and for calls that the program
does not show, the coarse rule holds: anything that the session has read may be in every argument.
"""

from collections.abc import Mapping, Sequence

from holdfast.core import UNKNOWN, CallOrigins, Json, JsonObject, Level, Origin, Origins, Tool
from holdfast.core.events import RunStarted
from holdfast.guests import CALL_PLACE, Capabilities, call_name, lisp_tree, parameters
from holdfast.policy import Flow, Signature, python_flow

COARSE: Origins = frozenset({Origin(kind="session"), Origin(kind="written")})
_NOT_FOLLOWED: dict[str, tuple[Origin, ...]] = {"*": (UNKNOWN, Origin(kind="unknown", operation="()"))}
"""The variables after programs that nobody followed: they may have replaced what any name means."""


class ProgramOrigins:
    """Follows one program; `flow` is None if its engine does not say where a call stands."""

    def __init__(self, author: Level, flow: Flow | None) -> None:
        self._author = author
        self._flow = flow

    def of_call(self, operation: str, arguments: JsonObject) -> CallOrigins:
        """The origins of the call that is being made."""
        place = CALL_PLACE.get()
        if self._flow is None or place is None:
            return CallOrigins(author=self._author, arguments=dict.fromkeys(arguments, COARSE))
        flow = self._flow
        return CallOrigins(
            author=self._author,
            arguments={
                name: _with_lost_text(flow.origins_of(place, operation, name), value)
                for name, value in arguments.items()
            },
        )

    def shown(self, *, has_failed: bool) -> Origins:
        """What the run shows to the model. An error may carry anything that was read."""
        return COARSE if self._flow is None or has_failed else self._flow.shown

    def variables(self) -> dict[str, tuple[Origin, ...]] | None:
        """What the variables are made of after the run."""
        if self._flow is None:
            return None
        return {name: tuple(sorted(each, key=repr)) for name, each in self._flow.variables.items()}


def _with_lost_text(origins: Origins, value: Json) -> Origins:
    """The origins of an argument. A text that is made of nothing was lost by the analysis, and may be anyone's."""
    if any(not origin.is_chosen for origin in origins) or not _has_text(value):
        return origins
    return origins | {UNKNOWN}


def _has_text(value: Json) -> bool:
    match value:
        case str():
            return value != ""
        case list():
            return any(_has_text(each) for each in value)
        case dict():
            return any(_has_text(each) for pair in value.items() for each in pair)
        case _:
            return False


def follow_program(
    started: RunStarted,
    *,
    capabilities: Capabilities,
    tools: Sequence[Tool],
    variables: Mapping[str, tuple[Origin, ...]] | None,
) -> ProgramOrigins:
    """Follow the program of a run that the policy asks levels of."""
    author = started.author or "stranger"
    if not capabilities.follows_values:
        return ProgramOrigins(author, None)
    if started.state is None:
        variables = {}
    elif variables is None:
        variables = _NOT_FOLLOWED
    earlier = {name: frozenset(origins) for name, origins in variables.items()}
    if capabilities.language == "lisp":
        from holdfast.agent.lisp_flow import lisp_flow  # here, because few sessions run Lisp

        return ProgramOrigins(
            author, lisp_flow(started.code, tools=lisp_signatures(tools), variables=earlier)
        )
    return ProgramOrigins(author, python_flow(started.code, tools=_signatures(tools), variables=earlier))


def lisp_signatures(tools: Sequence[Tool]) -> dict[str, Signature]:
    """The tools by the names that Lisp programs call them."""
    return {
        name: Signature(operation=operation, parameters={each: each for each in positions})
        for name, (operation, positions) in lisp_tree.procedures_of_tools(tools).items()
    }


def _signatures(tools: Sequence[Tool]) -> dict[str, Signature]:
    return {
        call_name(tool): Signature(
            operation=tool.name, parameters={each.python: each.name for each in parameters(tool)}
        )
        for tool in tools
    }
