"""Runs the statements of a program abstractly, pass by pass."""

import ast
from collections.abc import Iterable, Mapping

from holdfast.policy.flow.atoms import (
    ANY,
    NOTHING,
    PAST_CONTAINER,
    Heap,
    Made,
    NamedGroup,
    Read,
    Val,
    choices,
)
from holdfast.policy.flow.call_arguments import arguments
from holdfast.policy.flow.expressions import Expressions, Unfollowed
from holdfast.policy.flow.result import Signature
from holdfast.policy.flow.variables import Variables


class AnalysedProgram:
    """A program under analysis. Each pass runs every statement, and every function that is reached, once."""

    def __init__(self, tree: ast.Module, *, tools: Mapping[str, Signature], past: Mapping[str, Val]) -> None:
        self.heap = Heap()
        self.variables = Variables(tree, heap=self.heap, past=past)
        self.expressions = Expressions(heap=self.heap, variables=self.variables, tools=tools)
        self._value = self.expressions.value
        self._tree = tree
        for value in past.values():
            self.expressions.tool_calls.note_read(value)
        if past:  # a container of an earlier run may hold others
            self.heap.add(PAST_CONTAINER, ANY, frozenset({PAST_CONTAINER}))

    def run_pass(self) -> None:
        """Run everything once. If `must_repeat` then, what is known is not yet complete."""
        self.heap.progress.start_pass()
        self.variables.start_pass()
        *before, last = self._tree.body or [ast.Pass()]
        self._body(before)
        if isinstance(last, ast.Expr):
            self.expressions.tool_calls.show(self._value(last.value))
        else:
            self._statement(last)
        functions = self.expressions.functions
        for number in functions.reached():
            node = functions.enter(number)
            if isinstance(node, ast.Lambda):
                functions.add_returned(self._value(node.body))
            else:
                self._body(node.body)

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _nested(self, *blocks: Iterable[ast.stmt]) -> None:
        self.variables.depth += 1
        for block in blocks:
            self._body(block)
        self.variables.depth -= 1

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=value):
                self._value(value)
            case ast.Assign(targets=targets, value=value):
                assigned = self._value(value)
                for target in targets:
                    self.expressions.bind(target, assigned)
            case ast.AnnAssign(target=target, annotation=annotation, value=annotated):
                self._value(annotation)
                if annotated is not None:
                    self.expressions.bind(target, self._value(annotated))
            case ast.AugAssign():
                self._augment(node)
            case ast.If(test=test, body=body, orelse=orelse):
                decided = self.heap.chosen(self._value(test))
                self.variables.under(decided, lambda: self._nested(body, orelse))
            case ast.While(test=test, body=body, orelse=orelse):
                decided = self.heap.chosen(self._value(test))
                self.variables.under(
                    decided, lambda: self._value(test)
                )  # it decides how often it runs itself
                self.variables.under(decided, lambda: self._nested(body, orelse))
            case ast.For():
                self._for(node)
            case ast.Try():
                self._try(node)
            case ast.With(items=items, body=body):
                for item in items:
                    entered = self._value(item.context_expr)
                    if item.optional_vars is not None:
                        self.expressions.bind(item.optional_vars, entered)
                self._body(body)
            case ast.FunctionDef():
                self._define(node)
            case ast.Return(value=returned):
                self.expressions.functions.add_returned(self._value(returned))
                self.variables.leave()
            case ast.Break() | ast.Continue():
                self.variables.leave()
            case ast.Raise(exc=error, cause=cause):
                self.expressions.tool_calls.note_raised(self._value(error) | self._value(cause))
                self.variables.leave()
            case ast.Assert(test=test, msg=message):
                decided = self.heap.chosen(self._value(test))
                self.variables.under(decided, lambda: self._value(message))
                self.variables.under(decided, self.variables.leave)
            case ast.Import(names=names):
                for alias in names:
                    module = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.variables.assign(alias.asname or module, frozenset({NamedGroup(module, True)}))
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for alias in names:
                    if alias.name == "*":
                        raise Unfollowed("import *")
                    member = self.expressions.module_member(module, alias.name)
                    self.variables.assign(alias.asname or alias.name, member)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target)
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                pass
            case _:
                raise Unfollowed(type(node).__name__)

    def _delete(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if self.expressions.is_predefined(target.id):
                raise Unfollowed(f"del {target.id}")  # the name means what it meant before the program
            return
        if not isinstance(target, ast.Subscript):
            raise Unfollowed("del")
        holders = self.heap.opened(self._value(target.value))
        decided = self.heap.chosen(self._value(target.slice)) | choices(holders) | self.variables.decided_by()
        for atom in holders:
            self.heap.change(atom, decided)

    def _for(self, node: ast.For) -> None:
        iterable = self._value(node.iter)
        # After a loop that never ran, its variables have their old values.
        names = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
        before = {name: self.expressions.name(name) for name in names if self.variables.has_versions(name)}
        self.heap.consume(iterable, self.variables.decided_by())
        self.expressions.bind(node.target, self.heap.items(iterable))
        self.variables.under(self.heap.counted(iterable), lambda: self._nested(node.body))
        for name, value in before.items():
            self.variables.assign(name, value | self.expressions.name(name))
        self._nested(node.orelse)

    def _try(self, node: ast.Try) -> None:
        self._nested(node.body)
        # Anything that was read may have decided whether an exception was raised.
        everything = self.expressions.tool_calls.everything_read()
        decided = self.heap.chosen(everything)
        self.variables.depth += 1
        for handler in node.handlers:
            self._value(handler.type)
            if handler.name is not None:
                self.variables.assign(handler.name, self.expressions.tool_calls.caught())
        handlers = [handler.body for handler in node.handlers]
        self.variables.under(decided, lambda: self._nested(*handlers, node.orelse))
        self.variables.under(decided, self.variables.leave)
        self.variables.depth -= 1
        self._nested(node.finalbody)

    def _define(self, node: ast.FunctionDef) -> None:
        self._value(node.returns)
        defaults = self.expressions.default_values(node.args)
        made: Val = frozenset({self.expressions.functions.define(node, defaults)})
        for decorator in reversed(node.decorator_list):
            given = arguments(decorator, made)
            made = self.expressions.rules.call(self._value(decorator), given, is_direct=False)
        self.variables.assign(node.name, made)

    def _augment(self, node: ast.AugAssign) -> None:
        """`x += y` changes a list in place, and gives every other value a new one."""
        target = node.target
        holders = self._value(target.value) if isinstance(target, ast.Subscript) else NOTHING
        before = self._value(target)
        value = self._value(node.value)
        decided = choices(before) | self.variables.decided_by()
        for atom in self.heap.opened(before):
            if isinstance(atom, Made):
                self.expressions.rules.update(atom, value)
                if isinstance(node.op, ast.Add):
                    self.heap.add(atom, ANY, self.heap.counted(value) | decided)
                else:  # a set loses elements
                    self.heap.change(atom, self.heap.chosen(value) | decided)
            elif isinstance(atom, Read):
                self.heap.add(atom, ANY, self.heap.items(value) | decided)
        result = before | self.expressions.operation(node, before, value)
        if isinstance(target, ast.Name):
            self.variables.assign_same(target.id, result)
        elif isinstance(target, ast.Subscript):
            self.expressions.store(holders, target.slice, result)
        else:
            self.expressions.bind(target, result)
