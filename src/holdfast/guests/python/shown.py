"""What is shown of a run's value and of its error: both bounded, both as the author of the code knows them."""

import pydantic_monty as monty

from holdfast.core import Json, encode
from holdfast.guests.python.plain import NotPlain, Plainer
from holdfast.guests.python.steps import as_written

_MAX_ERROR = 16_000
_DISPLAYED = monty.MontyRuntimeError | monty.MontySyntaxError | monty.MontyTypingError


def shown_value(complete: monty.MontyComplete, *, max_bytes: int) -> Json:
    """The value of a run that came to its end, or its size in words."""
    try:
        value = Plainer().convert(complete.output)
        size = len(encode(value))
    except NotPlain as error:
        return f"<a value that is too large to show: {error}>"
    if size > max_bytes:
        return f"<a value of {size} bytes: more than the {max_bytes} that are shown>"
    return value


def shown_error(error: monty.MontyError, *, is_counting: bool) -> str:
    """The traceback; of code that counts its steps, without what that takes."""
    text = error.display() if isinstance(error, _DISPLAYED) else str(error)
    if is_counting:
        text = as_written(text)
    if len(text) <= _MAX_ERROR:
        return text
    half = _MAX_ERROR // 2
    return f"{text[:half]}\n... {len(text) - _MAX_ERROR} characters ...\n{text[-half:]}"
