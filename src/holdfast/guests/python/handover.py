"""The plain data among a guest's variables, written out by the guest itself as JSON.

Values of other kinds never cross: the interpreter of version 1.4.0 dies when it hands out an instance of a guest's class.
"""

import keyword
from collections.abc import Iterable

import msgspec

from holdfast.core import Answer, JsonObject, Refused
from holdfast.guests.contract import Run

_MAX_NAMES = 2_000


def handover_code(names: Iterable[str]) -> str:
    """Code whose value is the JSON text of each variable that has one."""
    chosen = [name for name in names if not keyword.iskeyword(name) and not name.startswith("_")][:_MAX_NAMES]
    lines = ["import json as _json", "_written = {}"]
    for name in chosen:
        lines.append(f"try:\n    _written[{name!r}] = _json.dumps({name})\nexcept BaseException:\n    pass")
    return "\n".join([*lines, "_written"])


def read_handover(ended: Run) -> JsonObject:
    """The variables, from the value of `handover_code`; none where it was not to be had."""
    written = ended.value if ended.status == "ok" and isinstance(ended.value, dict) else {}
    return {name: msgspec.json.decode(text) for name, text in written.items() if isinstance(text, str)}


async def refuse_all(operation: str, _arguments: JsonObject) -> Answer:
    """The code above calls nothing."""
    return Refused(reason=f"{operation} is not for taking over variables", rule="handover")
