"""A question to the person at the terminal; whatever is not a clear yes is a no."""

from holdfast.cli.console import Console
from holdfast.cli.keyboard import LineKeyboard


async def says_yes(question: str, console: Console) -> bool:
    """Whether the person says yes. Ask only where somebody is there: `console.is_interactive`."""
    keyboard = LineKeyboard(write=lambda text: console.say(text, "ask", end=""))
    keyboard.open()
    try:
        answer = await keyboard.line(f"{question} [y/N] ")
    finally:
        keyboard.close()
    return answer is not None and answer.lower() in ("y", "yes")
