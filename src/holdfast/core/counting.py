"""Numbers of things in words."""


def counted(number: float, noun: str, plural: str = "") -> str:
    """A number of things, in the plural where it is not one: `1 turn`, `3 turns`, `2.5 seconds`, `2 replies`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"
