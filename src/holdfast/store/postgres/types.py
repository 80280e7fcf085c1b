"""The array and enum types that statements use, told to asyncpg when a connection opens.

asyncpg knows the scalar types. Of any other type it reads the catalogue of the server, on every connection again, with a
query that takes ten times as long as an append.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import asyncpg

_ARRAYS = {
    "bool": (16, 1000),
    "bytea": (17, 1001),
    "name": (19, 1003),
    "int8": (20, 1016),
    "int4": (23, 1007),
    "json": (114, 199),
    "float8": (701, 1022),
    "timestamptz": (1184, 1185),
    "interval": (1186, 1187),
    "uuid": (2950, 2951),
    "jsonb": (3802, 3807),
}
"""The number of a type and of its array: the same in every server."""
_ENUM = "SELECT oid, typarray FROM pg_type WHERE oid = to_regtype($1)"


def register_arrays(connection: asyncpg.Connection) -> None:
    """Tell a connection the arrays of the usual types."""
    _register(connection, (_array(name, *numbers) for name, numbers in _ARRAYS.items()))


async def register_enum(connection: asyncpg.Connection, name: str) -> None:
    """Tell a connection an enum of the search path and its array, if there is one."""
    if (row := await connection.fetchrow(_ENUM, name)) is not None:
        enum = {**_BLANK, "oid": row["oid"], "name": name, "kind": b"e"}
        _register(connection, (enum, _array(name, row["oid"], row["typarray"])))


_BLANK: Mapping[str, object] = {
    "ns": "pg_catalog",
    "kind": b"b",
    "basetype": None,
    "elemtype": None,
    "elemdelim": ",",
    "elemtype_name": None,
    "range_subtype": None,
    "attrtypoids": None,
    "attrnames": None,
}


def _array(name: str, element: int, array: int) -> Mapping[str, object]:
    return {**_BLANK, "oid": array, "name": f"_{name}", "elemtype": element, "elemtype_name": name}


def _register(connection: Any, types: Iterable[Mapping[str, object]]) -> None:
    connection._protocol.get_settings().register_data_types(
        types
    )  # what asyncpg does with the result of its query
