"""The arguments of one call expression."""

import ast

from holdfast.policy.flow.atoms import NOTHING, Val


class CallArguments:
    """What a call is given: by position, by name, and as `*args` or `**kwargs`."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node
        self.positional: list[Val] = []
        self.keywords: dict[str, Val] = {}
        self.rest: Val = NOTHING
        self.has_rest = False
        self.first_text: str | None = None
        """The first argument, if it is a literal text."""

    def everything(self) -> Val:
        """All values that are given."""
        return self.rest.union(*self.positional, *self.keywords.values())


def arguments(node: ast.expr, *positional: Val) -> CallArguments:
    """Arguments by position."""
    given = CallArguments(node)
    given.positional = list(positional)
    return given
