"""What a person would not see, made visible: a description or an argument may hide words that only a model reads.

Numbers of things in words.
"""

import unicodedata


def pluralize(number: float, noun: str, plural: str = "") -> str:
    """A number of things, in the plural where it is not one: `1 turn`, `3 turns`, `2.5 seconds`, `2 replies`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"


_PLAIN = frozenset("\n\t ")


def escape_invisible(text: str) -> str:
    """The text with everything a person would not see written out: `a\\u200bb` becomes `a<U+200B>b`."""
    return "".join(
        char if char in _PLAIN or not _is_hidden(char) else f"<U+{ord(char):04X}>" for char in text
    )


def escape_to_one_line(text: str) -> str:
    """The same with its line ends written out too, so that what others chose cannot pass for a line of ours."""
    return escape_invisible(text).replace("\n", "<U+000A>")


def has_invisible(text: str) -> bool:
    """Whether some of the text would not be seen."""
    return any(char not in _PLAIN and _is_hidden(char) for char in text)


def _is_hidden(char: str) -> bool:
    # Control, format (zero width, bidi, tags), surrogate, private use, unassigned, odd spaces; variation selectors and
    # fillers are letters or marks to Unicode and nothing to the eye.
    point = ord(char)
    return (
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
        or 0xFE00 <= point <= 0xFE0F
        or 0xE0100 <= point <= 0xE01EF
        or point in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
    )
