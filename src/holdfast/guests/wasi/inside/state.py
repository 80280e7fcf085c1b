"""Saves the variables of a session as bytes and loads them: pickle, extended to functions and classes that the code defined.

The bytes are written and read only inside the sandbox, so a forged state harms only its own session. The names of the functions in
this module are in saved pickles; see the package docstring.
"""

import dataclasses
import enum
import importlib
import io
import marshal
import pickle
import types
from typing import Any

_NOT_SAVED = frozenset(("__builtins__", "__name__", "__doc__"))
_SENTINELS: dict[str, object] = {
    name: getattr(dataclasses, name)
    for name in ("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "_HAS_DEFAULT_FACTORY")
}
"""dataclasses compares these by identity, so a copy would not work."""
_NAMELESS: dict[str, object] = {name: value for name, value in vars(types).items() if isinstance(value, type)}
"""Types of the interpreter (functions, cells, mapping proxies) that no module has under their own name."""
_BY_IDENTITY = {id(value): (kind, name) for kind, known in (("type", _NAMELESS), ("sentinel", _SENTINELS))
                for name, value in known.items()}  # fmt: skip
_NOT_CLASS_STATE = frozenset(("__dict__", "__weakref__", "__module__", "__qualname__", "__firstlineno__"))


def save(namespace: dict[str, Any], *, max_bytes: int) -> tuple[bytes, dict[str, str]]:
    """The variables as bytes, and why each of the others could not be kept, by name."""
    variables = {name: value for name, value in namespace.items() if name not in _NOT_SAVED}
    content = _try_dump(variables, namespace)
    if content is not None and len(content) <= max_bytes:
        return content, {}
    # One bad variable fails them all. Omit those that cannot be saved alone, then the largest; the rest keep their references.
    lost: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for name, value in list(variables.items()):
        try:
            sizes[name] = len(_dump(value, namespace))
        except Exception as problem:
            lost[name] = f"{type(value).__name__}: {problem}"
            del variables[name]
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        content = _dump(variables, namespace)
        if len(content) <= max_bytes:
            return content, lost
        lost[name] = f"{type(variables[name]).__name__}: {sizes[name]} bytes are too many"
        del variables[name]
    return _dump(variables, namespace), lost


def load(content: bytes, namespace: dict[str, Any]) -> None:
    """Put saved variables into the namespace."""
    namespace.update(_Loader(io.BytesIO(content), namespace).load())


def _try_dump(variables: dict[str, Any], namespace: dict[str, Any]) -> bytes | None:
    try:
        return _dump(variables, namespace)
    except Exception:
        return None


def _dump(value: object, namespace: dict[str, Any]) -> bytes:
    content = io.BytesIO()
    _Saver(content, namespace).dump(value)
    return content.getvalue()


class _Saver(pickle.Pickler):
    def __init__(self, file: io.BytesIO, namespace: dict[str, Any]) -> None:
        super().__init__(file, protocol=5)
        self._namespace = namespace

    def persistent_id(self, value: object) -> tuple[str, str] | None:
        if value is self._namespace:
            return "namespace", ""
        if isinstance(value, types.ModuleType):
            return "module", value.__name__
        return _BY_IDENTITY.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType) and not _is_importable(value):
            return _reduce_function(value)
        if isinstance(value, type) and not _is_importable(value):
            return _reduce_enum(value) if issubclass(value, enum.Enum) else _reduce_class(value)
        if isinstance(value, types.CellType):
            return _new_cell, (), _cell_state(value), None, None, _fill_cell
        if isinstance(value, types.MappingProxyType):
            return types.MappingProxyType, (dict(value),)
        if _is_builtin_descriptor(value):
            return _machinery, (value.__objclass__, value.__name__)
        if isinstance(value, property):
            return property, (value.fget, value.fset, value.fdel, value.__doc__)
        if isinstance(value, staticmethod | classmethod):
            return type(value), (value.__func__,)
        return NotImplemented


class _Loader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, namespace: dict[str, Any]) -> None:
        super().__init__(file)
        self._namespace = namespace

    def persistent_load(self, reference: tuple[str, str]) -> object:
        kind, name = reference
        if kind == "namespace":
            return self._namespace
        if kind == "module":
            return importlib.import_module(name)
        return _NAMELESS[name] if kind == "type" else _SENTINELS[name]


def _is_importable(value: Any) -> bool:
    """Whether another process finds this same object under its name in a module of the library."""
    if value.__module__ in (None, "__main__"):
        return False
    found: Any = importlib.sys.modules.get(value.__module__)  # type: ignore[attr-defined]
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value


def _reduce_function(function: types.FunctionType) -> Any:
    state = {
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__dict__": function.__dict__,
        "__doc__": function.__doc__,
        "__annotations__": function.__annotations__,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
    }
    arguments = (
        marshal.dumps(function.__code__),
        function.__globals__,
        function.__name__,
        function.__closure__,
    )
    return _new_function, arguments, state, None, None, _fill


def _new_function(code: bytes, namespace: dict[str, Any], name: str, closure: Any) -> types.FunctionType:
    return types.FunctionType(marshal.loads(code), namespace, name, None, closure)  # noqa: S302


def _cell_state(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return (None, "empty")


def _new_cell() -> types.CellType:
    return types.CellType()


def _fill_cell(cell: types.CellType, state: tuple[Any, ...]) -> None:
    if len(state) == 1:
        cell.cell_contents = state[0]


def _reduce_class(value: type) -> Any:
    slots = value.__dict__.get("__slots__", ())
    own = {slots} if isinstance(slots, str) else set(slots)
    state = {
        name: member
        for name, member in value.__dict__.items()
        if name not in _NOT_CLASS_STATE and name not in own and not _is_builtin_descriptor(member)
    }
    head = {"__module__": value.__module__, "__qualname__": value.__qualname__}
    if "__slots__" in value.__dict__:
        head["__slots__"] = slots
        state.pop("__slots__", None)
    return _new_class, (type(value), value.__name__, value.__bases__, head), state, None, None, _fill


def _is_builtin_descriptor(member: object) -> bool:
    return isinstance(member, types.GetSetDescriptorType | types.MemberDescriptorType)


def _machinery(owner: type, name: str) -> object:
    """A descriptor that Python itself puts into each class; annotation functions of Python 3.14 refer to it."""
    return owner.__dict__[name]


def _new_class(metaclass: Any, name: str, bases: tuple[type, ...], head: dict[str, Any]) -> Any:
    return metaclass(name, bases, dict(head))


def _reduce_enum(value: type[enum.Enum]) -> Any:
    members = [(name, member.value) for name, member in value.__members__.items()]
    made = set(value.__members__) | set(dir(enum.Enum)) | _NOT_CLASS_STATE
    state = {
        name: member
        for name, member in value.__dict__.items()
        if name not in made and not name.startswith("_") and not isinstance(member, enum.property)
    }
    head = {"__module__": value.__module__, "__qualname__": value.__qualname__}
    return _new_enum, (value.__bases__, value.__name__, members, head), state, None, None, _fill


def _new_enum(bases: tuple[Any, ...], name: str, members: list[tuple[str, Any]], head: dict[str, Any]) -> Any:
    metaclass = type(bases[-1])
    body = metaclass.__prepare__(name, bases)
    for key, member in [*head.items(), *members]:
        body[key] = member
    return metaclass(name, bases, body)


def _fill(value: Any, state: dict[str, Any]) -> None:
    for name, member in state.items():
        if name == "__dict__":
            value.__dict__.update(member)
        else:
            setattr(value, name, member)
