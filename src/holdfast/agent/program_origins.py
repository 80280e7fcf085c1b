"""The origins of what one program does: of the arguments of its calls, of what it shows, and of the variables it leaves.

An engine that says where each call stands gets the exact flow of its program. For every other, and for calls that the program
does not show, the coarse rule holds: anything that the session has read may be in every argument.
"""

from collections.abc import Mapping, Sequence

from holdfast.core import UNKNOWN, CallOrigins, JsonObject, Level, Origin, Origins, Tool
from holdfast.core.events import RunStarted
from holdfast.guests import CALL_PLACE, Capabilities, call_name, lisp_tree, parameters
from holdfast.policy import Flow, Signature, python_flow

COARSE: Origins = frozenset({Origin(kind="session"), Origin(kind="written")})
_EVERY_OTHER_UNKNOWN: dict[str, tuple[Origin, ...]] = {"*": (UNKNOWN,)}


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
            arguments={name: flow.origins_of(place, operation, name) for name in arguments},
        )

    def shown(self, *, has_failed: bool) -> Origins:
        """What the run shows to the model. An error may carry anything that was read."""
        return COARSE if self._flow is None or has_failed else self._flow.shown

    def variables(self) -> dict[str, tuple[Origin, ...]] | None:
        """What the variables are made of after the run."""
        if self._flow is None:
            return None
        if self._flow.unknown:
            return _EVERY_OTHER_UNKNOWN
        return {name: tuple(sorted(each, key=repr)) for name, each in self._flow.variables.items()}


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
        variables = _EVERY_OTHER_UNKNOWN
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
