"""A random mutator that knows the shapes of our inputs: JSON, lines of JSON, zip files and indented text.

It changes values inside a valid document more often than single bytes, because a parser refuses most damaged bytes at once.
"""

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

EXTREMES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**400, 1e308, 0.1, "", "\0", "x" * 5000, "\ud800",
    "\u202e", "../..", "/etc/passwd", ".git/config", "NaN", "1e999999999", [], {}, [[]], {"": {}}, [None] * 50,
)  # fmt: skip
TOKENS = (
    b"{", b"}", b"[", b"]", b"(", b")", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b":", b",", b"\n", b"\r", b"\0", b"- ", b"---\n",
    b"&a ", b"*a", b"<<: *a", b"!!python/object:os.system ", b"!!binary ", b"!!bool ", b"!!int ", b"!!timestamp ", b"1:", b"%TAG !a! b\n", b"|\n", b"data: ", b"event: ", b"[DONE]", b"null",
    b"9" * 400, b"-0", b"1e400", b"NaN", b"Infinity", b"#", b"`", b",@", b". ", b"#t", b";", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f",
)  # fmt: skip
MAX_BYTES = 60_000


def mutate(data: bytes, chance: random.Random, corpus: Sequence[bytes] = ()) -> bytes:
    """A changed copy of an input."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(_kinds(data))(data, chance, corpus)
    return data[:MAX_BYTES]


Kind = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def _kinds(data: bytes) -> list[Kind]:
    kinds: list[Kind] = [_flip, _cut, _repeat, _insert, _splice]
    if data[:2] == b"PK":
        return [*kinds, _zip, _zip, _zip, _zip]
    if b"{" in data:
        kinds += [_json_line] * 5
    if b"\n" in data:
        kinds += [_lines] * 3
    return kinds


def _flip(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    if not data:
        return b"\0"
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 2, 8, 64, 1024)))


def _cut(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + data[end:] if chance.random() < 0.8 else data[:start]


def _repeat(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    start, end = _span(data, chance)
    times = chance.choice((1, 2, 100, 10_000))
    return data[:start] + data[start:end] * min(times, MAX_BYTES // max(1, end - start)) + data[start:]


def _insert(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(TOKENS) * chance.choice((1, 1, 3, 2000)) + data[place:]


def _splice(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    other = chance.choice(corpus) if corpus else data
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _lines(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = b" " * chance.choice((1, 2, 4)) + lines[at]
        case _:
            key, colon, _ = lines[at].partition(b":")
            lines[at] = key + colon + b" " + json.dumps(chance.choice(EXTREMES)).encode()
    return b"\n".join(lines)


def _json_line(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Change one value in one of the JSON documents: the whole input, or what follows the first brace of a line."""
    try:
        return _dump(_change(json.loads(data), chance))
    except (ValueError, RecursionError):
        pass
    lines = data.split(b"\n")
    at = chance.choice([number for number, line in enumerate(lines) if b"{" in line])
    head, brace, tail = lines[at].partition(b"{")
    try:
        lines[at] = head + _dump(_change(json.loads(brace + tail), chance))
    except (ValueError, RecursionError):
        return _insert(data, chance, corpus)
    return b"\n".join(lines)


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _change(value: Any, chance: random.Random) -> Any:
    """One change somewhere in a tree."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        match chance.randrange(12):
            case 0:
                return {name: each for name, each in value.items() if name != key}
            case 1:
                return value | {chance.choice(list(value)): value[key]}
            case 2:
                return value | {str(chance.choice(EXTREMES))[:100]: value[key]}
            case _:
                return value | {key: _change(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        match chance.randrange(8):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return value[:at] + [value[at]] * chance.choice((2, 50)) + value[at:]
            case _:
                return [*value[:at], _change(value[at], chance), *value[at + 1 :]]
    if isinstance(value, str) and value and chance.random() < 0.5:
        at = chance.randrange(len(value))
        return (
            value[:at]
            + chance.choice(("\0", "\x1b", "\ud800", "9", "-", "/", "..", "é", ""))
            + value[at + 1 :]
        )
    return chance.choice(EXTREMES)


def _zip(data: bytes, chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Change one entry of a zip file, or its name."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()[:50]}
        name = chance.choice(list(entries))
    except Exception:  # it is no zip file any more, in one of the many ways that the library knows
        return _flip(data, chance, corpus)
    match chance.randrange(6):
        case 0:
            del entries[name]
        case 1:
            entries[chance.choice(("../x", "/x", "blobs/..", "events.jsonl/", "blobs/" + "0" * 64))] = (
                entries[name]
            )
        case _:
            entries[name] = mutate(entries[name], chance)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as changed:
        for each, content in entries.items():
            changed.writestr(each, content)
    return out.getvalue()
