"""Text for people: escaping invisible characters, which can hide words that only a model reads, and plurals."""

import json
import re
import unicodedata
from collections.abc import Iterator

from holdfast.core.values import Json, encode


def pluralize(number: float, noun: str, plural: str = "") -> str:
    """Format a count with its noun: `1 turn`, `3 turns`, `2.5 seconds`, `2 replies`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"


_PLAIN = frozenset("\n\t ")
_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI = re.compile(f"{_PICTOGRAPH}\ufe0f?(?:\u200d{_PICTOGRAPH}\ufe0f?)*|[0-9#*]\ufe0f\u20e3")
"""Emoji are ordinary text, and some are written with a joiner or a variation selector: a heart, a family, a keycap. In an emoji,
and only there, these two characters are kept. They can carry no words, unlike tag characters and runs of selectors."""


_PLAIN_ASCII = re.compile(r"[\n\t\x20-\x7e]*")


def cut(value: Json, limit: int) -> Json:
    """A value shortened to about `limit` characters, for showing. Its cost does not grow with the value.

    Cut first, then escape: escaping looks at every character.
    """
    return _cut(value, [limit])


def _cut(value: Json, room: list[int]) -> Json:
    match value:
        case str():
            kept: Json = value[: max(room[0], 0)]
            room[0] -= len(value)
            return kept
        case list():
            shown: list[Json] = []
            for each in value:
                if room[0] <= 0:
                    break
                room[0] -= 1
                shown.append(_cut(each, room))
            return shown
        case dict():
            pairs: dict[str, Json] = {}
            for name, each in value.items():
                if room[0] <= 0:
                    break
                pairs[name[: room[0]]] = _cut(each, room)
                room[0] -= len(name) + 1
            return pairs
        case int() if value.bit_length() > 4 * room[0] + 64:
            return 0  # the digits of a huge number cost as much as its text
        case _:
            room[0] -= 1
            return value


def escape_invisible(text: str) -> str:
    """Replace invisible characters with their code points: `a\\u200bb` becomes `a<U+200B>b`."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    return "".join(map(_escape_piece, _pieces(text)))


def _escape_piece(text: str) -> str:
    return "".join(f"<U+{ord(char):04X}>" if is_hidden else char for char, is_hidden in _characters(text))


_PIECE_CHARACTERS = 1 << 16
_MAX_EMOJI_CHARACTERS = 64
"""An emoji with more, of people and joiners, is not one that anybody wrote; a piece may end in it."""


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces that end outside of emoji: the characters of a long text, one by one, take fifty times its memory."""
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARACTERS
        limit = end + _MAX_EMOJI_CHARACTERS
        while end < min(len(text), limit) and (
            text[end] in "\u200d\ufe0f\u20e3" or text[end - 1] == "\u200d"
        ):
            end += 1
        yield text[start:end]
        start = end


def escape_to_one_line(text: str) -> str:
    """Escape line breaks as well, so that untrusted text cannot pass for a line of our own output."""
    return escape_invisible(text).replace("\n", "<U+000A>")


_OBEYED_IN_JSON = re.compile(
    "[\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def escape_json(document: str) -> str:
    """A JSON document with control, bidirectional and invisible characters as `\\u` escapes. Parsed, it is the same document."""
    return _OBEYED_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], document)


def json_pieces(value: Json | tuple[Json, ...], indent: str = "\n") -> Iterator[str]:
    """The JSON of a value, indented, in pieces: that of one long text can be six times as large as the text."""
    match value:
        case str():
            yield '"'
            for start in range(0, len(value), _PIECE_CHARACTERS):
                yield json.dumps(value[start : start + _PIECE_CHARACTERS], ensure_ascii=False)[1:-1]
            yield '"'
        case dict() if value:
            before = "{"
            for name, each in value.items():
                yield f"{before}{indent}  "
                yield from json_pieces(name)
                yield ": "
                yield from json_pieces(each, f"{indent}  ")
                before = ","
            yield f"{indent}}}"
        case list() | tuple() if value:
            before = "["
            for each in value:
                yield f"{before}{indent}  "
                yield from json_pieces(each, f"{indent}  ")
                before = ","
            yield f"{indent}]"
        case _:
            yield encode(value).decode()


_WORD = re.compile(r"[^\W\d_]+")
_LOOKALIKE_SCRIPTS = (
    "CYRILLIC",
    "GREEK",
    "ARMENIAN",
    "CHEROKEE",
    "COPTIC",
    "LISU",
    "FULLWIDTH",
    "MATHEMATICAL",
)
_LATIN_LOOKALIKES = frozenset("авсԁеһіјӏмнорԛѕтѵԝхуАВСЕНІЈКМОРЅТХУαβγικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
"""Letters of other scripts that look like Latin ones."""


_SIGN_LOOKALIKES = re.compile(
    "[\u2010\u2011\u2024\u2043\u2044\u2212\u2215\u2216\u2236\u29f5\u29f8\u29f9\ua789\uff0e\uff0f\uff1a\uff3c]"
)
"""Signs that look like the slash, dot, colon, hyphen and backslash of paths, addresses and options."""


def mark_lookalikes(text: str) -> str:
    """The text with the code point after each character that only looks Latin: a letter in a word that mixes scripts or in a
    whole word of such letters, and a sign. `p\u0430ssword` becomes `p\u0430<U+0430>ssword`.
    """
    if text.isascii():
        return text
    marked = _WORD.sub(lambda word: _marked(word[0]), text)
    return _SIGN_LOOKALIKES.sub(lambda sign: f"{sign[0]}<U+{ord(sign[0]):04X}>", marked)


def _marked(word: str) -> str:
    letters = set(word)
    foreign = {char for char in letters if _is_variant(char) or _script(char) in _LOOKALIKE_SCRIPTS}
    is_mixed = bool(foreign) and foreign != letters and any(_script(char) == "LATIN" for char in letters)
    is_imitation = any(map(_is_variant, foreign)) or (bool(foreign) and _LATIN_LOOKALIKES.issuperset(word))
    if not is_mixed and not is_imitation:
        return word
    return "".join(f"{char}<U+{ord(char):04X}>" if char in foreign else char for char in word)


def _is_variant(char: str) -> bool:
    """Whether it is a styled, phonetic or small-capital letter or a Roman numeral, which stands for a Latin letter."""
    if char.isascii():
        return False
    is_phonetic = "\u0250" <= char <= "\u02af" or "\u1d00" <= char <= "\u1dbf" or "\ua720" <= char <= "\ua7ff"
    return is_phonetic or unicodedata.normalize("NFKC", char).isascii()


def _script(char: str) -> str:
    return "LATIN" if char.isascii() else unicodedata.name(char, "").partition(" ")[0]


def has_invisible(text: str) -> bool:
    """Whether the text contains an invisible character."""
    return any(is_hidden for _, is_hidden in _characters(text))


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it is hidden."""
    kept = {place for emoji in _EMOJI.finditer(text) for place in range(*emoji.span())}
    for place, char in enumerate(text):
        is_kept = char in _PLAIN or (char in "\ufe0f\u200d" and place in kept)
        yield char, not is_kept and _is_invisible(char)


def _is_invisible(char: str) -> bool:
    # Control, format (zero width, bidi, tags), surrogate, private use, unassigned, unusual spaces. Unicode classifies
    # variation selectors and fillers as letters or marks, but they are invisible too.
    point = ord(char)
    return (
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
        or 0xFE00 <= point <= 0xFE0F
        or 0xE0100 <= point <= 0xE01EF
        or point in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
    )


def format_age(milliseconds: int) -> str:
    """A duration in its largest unit: 3m, 2h, 9d, 1y."""
    seconds = max(milliseconds, 0) // 1000
    for size, unit in ((31_536_000, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
