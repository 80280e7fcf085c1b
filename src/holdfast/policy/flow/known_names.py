"""Names that the analysis knows: built-in functions, modules and methods, by what they do with values.

A name that is not here is unknown: what it gives may come from anyone.
"""

import builtins

ALL_BUILTINS = frozenset(dir(builtins))
FILE_NAMES = frozenset({"open", "Path", "pathlib", "os", "io", "shutil", "glob"})
"""Names that lead to files. What the program gets through them is a file's, and its calls have no place of their own."""
COMPUTING_MODULES = frozenset(
    {"re", "math", "json", "datetime", "time", "string", "typing", "statistics", "decimal", "fractions", "textwrap",
     "base64", "hashlib", "html", "unicodedata", "calendar"}
)  # fmt: skip
"""Modules whose functions compute from their arguments, and the host's clock, and change nothing."""
PURE_MODULES = COMPUTING_MODULES | {
    "random",
    "itertools",
    "functools",
    "collections",
    "operator",
    "copy",
    "bisect",
    "heapq",
}
"""Modules whose functions reach nothing but their arguments."""
HIDDEN_STATE = frozenset(
    {"random.seed", "random.setstate", "decimal.setcontext", "decimal.localcontext", "time.sleep"}
)
"""Functions that put a value where other functions of the module find it."""
MODULES_WITH_STATE = frozenset({"random", "decimal"})
TESTS = frozenset({"len", "bool", "any", "all", "isinstance", "issubclass", "callable", "type", "hasattr"})
COPIES = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"})
COMPUTING = frozenset(
    {"str", "repr", "int", "float", "abs", "round", "chr", "ord", "format", "ascii", "bin", "hex", "oct", "divmod", "pow",
     "bytes", "complex", "hash"}
)  # fmt: skip
ERRORS = frozenset(
    {"Exception", "BaseException", "ValueError", "KeyError", "TypeError", "IndexError", "RuntimeError", "OSError",
     "LookupError", "ArithmeticError", "ZeroDivisionError", "FileNotFoundError", "PermissionError", "TimeoutError",
     "AttributeError", "NotImplementedError", "StopIteration", "AssertionError", "NameError", "UnicodeDecodeError"}
)  # fmt: skip
PURE_BUILTINS = (
    TESTS | COPIES | COMPUTING | ERRORS
    | {"print", "range", "next", "dict", "enumerate", "zip", "map", "filter", "max", "min", "sum", "slice"}
)  # fmt: skip
TEST_METHODS = frozenset(
    {"startswith", "endswith", "isdigit", "isalpha", "isspace", "isupper", "islower", "isalnum", "isnumeric", "isdecimal",
     "isidentifier", "istitle", "isascii", "isprintable", "count", "index", "find", "rfind", "rindex", "issubset",
     "issuperset", "isdisjoint"}
)  # fmt: skip
COMPUTING_METHODS = frozenset(
    {"split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold",
     "swapcase", "replace", "join", "format", "format_map", "partition", "rpartition", "center", "ljust", "rjust", "zfill",
     "expandtabs", "translate", "encode", "decode", "removeprefix", "removesuffix", "group", "groups", "groupdict", "start",
     "end", "span", "strftime", "isoformat", "date", "time", "weekday", "isoweekday", "timestamp", "total_seconds",
     "hexdigest", "bit_length", "as_integer_ratio"}
)  # fmt: skip
MAKES_CONTAINERS = frozenset({"split", "rsplit", "splitlines", "groupdict"})
"""Of the methods that compute: they give a container that the program can change."""
LAZY = frozenset({"iter", "reversed", "map", "filter", "zip", "enumerate"})
"""Functions that give an iterator: what they do, they do when an element is taken."""
MOVERS = frozenset({"remove", "discard", "clear", "sort", "reverse", "rotate"})
ALGEBRA = frozenset({"union", "intersection", "difference", "symmetric_difference"})
