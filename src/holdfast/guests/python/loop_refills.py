"""Where loops over files get a call, so that a file that is larger than one read can fetch its next piece.

The interpreter cannot ask the host for anything while a `for` loop takes the next item from an object. It can at any other place,
so the call is where the loop starts and at the start of its body. It does nothing unless such a file waits for a piece. A loop that
the scan does not understand stays as it is, and then ends with an error that says how to read the file.
"""

from holdfast.guests.python.code_tokens import Token

REFILL = "_holdfast_waiting and _holdfast_refill()"
"""Defined by the file prelude. Its value is always false."""
_MAX_TOKENS = 1_000
"""Of one comprehension, so that code with many of them is scanned in linear time."""
_TAKE_NO_CALL = frozenset({"def", "class", "async", "@", "else", "except", "finally", "try"})
"""How a statement starts that has no place for a call."""


class Insertions:
    """Texts to insert into code, by position. What is inserted first at a position stays first."""

    def __init__(self) -> None:
        self.texts: dict[int, list[str]] = {}

    def statement(self, position: int, call: str) -> None:
        """Insert a call as a statement before another."""
        self.add(position, f"{call}; ")

    def operand(self, position: int, call: str) -> None:
        """Insert a call before an expression, after the keyword or operator that ends at the position."""
        self.add(position, f" {call} or")

    def element(self, position: int, call: str) -> None:
        """Insert a call before an expression that starts at the position."""
        self.add(position, f"{call} or ")

    def add(self, position: int, text: str) -> None:
        texts = self.texts.setdefault(position, [])
        if text not in texts:
            texts.append(text)


def insert_refills(lines: list[list[Token]], insertions: Insertions) -> None:
    """Insert a call into each loop that may be over a file."""
    for number, line in enumerate(lines):
        if line[0].text == "for":
            _enter_loop(lines, number, insertions)
        brackets: list[Token] = []
        for at, token in enumerate(line):
            if token.kind == "open":
                brackets.append(token)
            elif token.kind == "close" and brackets:
                brackets.pop()
            elif token.text == "for" and brackets:
                _enter_comprehension(line, at, brackets[-1], insertions)


def insert_before(line: list[Token], call: str, insertions: Insertions) -> bool:
    """Insert a call that runs before a statement. False if the statement has no place for it."""
    first, second = line[0], line[1] if len(line) > 1 else line[0]
    match first.text:
        case "if" | "elif" | "while":
            is_assignment = len(line) > 2 and line[2].text == ":="
            insertions.operand((line[2] if is_assignment else first).end, call)
        case "with":
            if second.kind == "open":
                return False
            insertions.operand(first.end, call)
        case "for":
            begin = next((token for token in line if token.text == "in" and not token.depth), None)
            if begin is None:
                return False
            insertions.operand(begin.end, call)
        case text if text in _TAKE_NO_CALL or line[-1].text == ":":
            return False
        case "match" | "case" if any(token.text == ":" and not token.depth for token in line):
            return False
        case _:
            insertions.statement(first.start, call)
    return True


def _enter_loop(lines: list[list[Token]], number: int, insertions: Insertions) -> None:
    line = lines[number]
    begin = next((at for at, token in enumerate(line) if token.text == "in" and not token.depth), None)
    if begin is None:
        return
    end = next((at for at in range(begin, len(line)) if line[at].text == ":" and not line[at].depth), None)
    if end is None or not _may_be_file(line[begin + 1 : end]):
        return
    if _insert_into_body(lines, number, end, insertions):
        insertions.operand(line[begin].end, REFILL)


def _insert_into_body(lines: list[list[Token]], number: int, colon: int, insertions: Insertions) -> bool:
    """Insert a call into the body after a colon. False if the body has no place for it."""
    while colon + 1 >= len(lines[number]):
        number += 1
        if number >= len(lines):
            return False
        if lines[number][0].text != "try":
            return insert_before(lines[number], REFILL, insertions)
        colon = 1
    insertions.statement(lines[number][colon + 1].start, REFILL)
    return True


def _enter_comprehension(line: list[Token], at: int, bracket: Token, insertions: Insertions) -> None:
    """Insert calls into a comprehension whose `for` is at this place, inside this bracket."""
    begin: int | None = None
    for number in range(at, min(len(line), at + _MAX_TOKENS)):
        token = line[number]
        if token.depth != bracket.depth:
            continue
        if begin is None:
            begin = number if token.text == "in" else None
        elif token.text in ("if", "for") or token.kind == "close":
            if _may_be_file(line[begin + 1 : number]):
                insertions.operand(line[begin].end, REFILL)
                if token.text == "if":
                    insertions.operand(token.end, REFILL)
                else:
                    insertions.element(bracket.end, REFILL)
            return


def _may_be_file(tokens: list[Token]) -> bool:
    """Whether an expression is a variable, an attribute, an element or a call of `open`."""
    if not tokens or tokens[0].kind != "name" or any(token.text == "lambda" for token in tokens):
        return False
    if any(token.text == "open" for token in tokens):
        return True
    base = tokens[0].depth
    return all(
        token.depth > base or token.kind == "close" or token.text == "." or token.kind == "name"
        for token in tokens
    ) and not any(token.text == "(" for token in tokens)
