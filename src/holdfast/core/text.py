"""Text for people: escaping invisible characters, which can hide words that only a model reads, and plurals."""

import unicodedata


def pluralize(number: float, noun: str, plural: str = "") -> str:
    """Format a count with its noun: `1 turn`, `3 turns`, `2.5 seconds`, `2 replies`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"


_PLAIN = frozenset("\n\t ")


def escape_invisible(text: str) -> str:
    """Replace invisible characters with their code points: `a\\u200bb` becomes `a<U+200B>b`."""
    return "".join(
        char if char in _PLAIN or not _is_invisible(char) else f"<U+{ord(char):04X}>" for char in text
    )


def escape_to_one_line(text: str) -> str:
    """Escape line breaks as well, so that untrusted text cannot pass for a line of our own output."""
    return escape_invisible(text).replace("\n", "<U+000A>")


def has_invisible(text: str) -> bool:
    """Whether the text contains an invisible character."""
    return any(char not in _PLAIN and _is_invisible(char) for char in text)


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
