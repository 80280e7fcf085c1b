"""What the procedures of Lisp do with their arguments, as far as the flow of a program depends on it."""

SAME = frozenset({
    "append", "caddr", "cadr", "car", "cdr", "cons", "drop", "filter", "find", "first", "identity", "last", "list",
    "nth", "rest", "reverse", "second", "sort", "take", "third",
})  # fmt: skip
"""They return their arguments, parts of lists of them, or lists of them."""
PASSES_ITEMS = frozenset({
    "any", "every", "filter", "find", "for-each", "map", "sort",
})  # fmt: skip
"""They give procedures nothing but the items of lists; others may also give them what they returned."""
SHOWS = frozenset({
    "display", "print",
})  # fmt: skip
REMEMBERS = frozenset({
    "%memo", "%memo-auto", "%memo-cached?", "%memo-deps", "fact", "fact/get", "fact?", "facts", "facts/signature",
    "memo/stats",
})  # fmt: skip
"""What they return may come from an earlier program."""
CALLS_NOTHING = frozenset({
    "*", "+", "-", "/", "<", "<=", "=", ">", ">=", "abs", "append", "assert", "assoc", "blocked?", "caddr", "cadr",
    "car", "cdr", "cons", "count", "cycle", "display", "drop", "empty?", "entries", "eq?", "equal?", "error", "fact",
    "fact/get", "fact/put!", "fact?", "facts", "failed", "first", "get", "has?", "identity", "integer?", "keys",
    "last", "length", "list", "list?", "max", "member", "merge", "min", "modulo", "needs", "newline", "nil?",
    "nonconverged", "not", "nth", "null?", "number->string", "number?", "ok", "outcome-field", "outcome-tag",
    "outcome-value", "pair?", "print", "procedure?", "proposed", "put", "quotient", "range", "remainder", "remove",
    "rest", "reverse", "second", "str", "string->number", "string->symbol", "string-append", "string-join",
    "string-length", "string-repeat", "string-replace", "string-split", "substring", "success?", "symbol->string",
    "table", "take", "third", "values", "write-string",
})  # fmt: skip
"""Procedures of the language that call none of those that they are given. Any other may."""
UNFOLLOWED = frozenset({
    "%define-macro", "%eval", "%subeval", "eval", "subeval",
})  # fmt: skip
MAKES_KEYWORDS = frozenset({
    "read-string", "string->symbol",
})  # fmt: skip
