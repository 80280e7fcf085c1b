"""Numbers of things in words."""


def counted(number: int, noun: str) -> str:
    """A number of things, in the plural where it is not one: `1 turn`, `3 turns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
