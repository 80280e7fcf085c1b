"""What a terminal shows after some output: enough of an emulator for a program that draws the full screen."""

import re

_TOKEN = re.compile(
    r"\x1b\[([?>=]?)([0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[()].|\x1b[=>78cDEMH]|[\r\n\b\x07]|[^\x1b]",
    re.DOTALL,
)


def shown_rows(output: str, rows: int = 24, columns: int = 80) -> list[str]:
    """The rows of the screen after this output, from an empty screen."""
    cells = [[" "] * columns for _ in range(rows)]
    row = column = 0
    for found in _TOKEN.finditer(output):
        text, private, numbers, command = found[0], found[1], found[2], found[3]
        if command:
            given = [int(number) if number else 0 for number in numbers.split(";")] if numbers else []
            first = given[0] if given else 0
            step = max(1, first)
            match command:
                case "H" | "f":
                    row, column = max(0, first - 1), max(0, (given[1] if len(given) > 1 else 1) - 1)
                case "A":
                    row -= step
                case "B":
                    row += step
                case "C":
                    column += step
                case "D":
                    column -= step
                case "G":
                    column = step - 1
                case "J" if not private:
                    start = 0 if first == 2 else row * columns + column
                    for place in range(start, rows * columns):
                        cells[place // columns][place % columns] = " "
                case "K":
                    cells[row][min(column, columns) :] = [" "] * max(0, columns - column)
                case "h" if private == "?" and first == 1049:
                    cells, row, column = [[" "] * columns for _ in range(rows)], 0, 0
                case _:
                    pass
        elif text == "\r":
            column = 0
        elif text == "\n":
            row += 1
        elif text == "\b":
            column -= 1
        elif text >= " ":
            if column >= columns:
                row, column = row + 1, 0
            cells[min(row, rows - 1)][column] = text
            column += 1
        while row >= rows:
            cells, row = [*cells[1:], [" "] * columns], row - 1
        row, column = max(0, row), max(0, min(column, columns))
    return ["".join(each).rstrip() for each in cells]
