"""Small programs that use files, for a comparison of the sandboxes with CPython.

A program opens one file, evaluates expressions one after the other, and closes the file. Its outcome is the value or the exception of
each expression, and every file that it leaves. All programs run as one batch: each is a function with its own folder.
"""

from collections.abc import Iterator
from typing import NamedTuple

INPUTS: dict[str, bytes] = {
    "lf": b"one\ntwo\nthree\n",
    "crlf": b"one\r\ntwo\r\nthree",
    "mixed": b"a\rb\r\nc\nd\n\r\n",
    "unicode": "héllo\nwörld €\n😀 end\n".encode(),
    "empty": b"",
    "no_last_newline": b"x\ny",
    "latin": b"caf\xe9\n\xe0 la\n",
    "bom": b"\xef\xbb\xbfone\ntwo\n",
    "utf16": "one\nzwö\n".encode("utf-16"),
    "invalid": b"ok\n\xff\xfe\xfa\n",
    "long": b"".join(b"%d: a line of some length\n" % number for number in range(40)),
}


class FileProgram(NamedTuple):
    """What a program opens, and the expressions that it evaluates with `f`, the file."""

    content: str
    """A name in INPUTS; empty if the file does not exist before."""
    mode: str
    options: str
    expressions: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.content or 'none'} open({self.mode!r}{self.options}) {'; '.join(self.expressions)}"


_READS: tuple[tuple[str, ...], ...] = (
    ("f.read()", "f.read()"),
    ("f.read(2)", "f.read(3)", "f.read(0)", "f.read()", "f.read(1)"),
    ("f.readline()", "f.readline(2)", "f.readline()", "f.readlines()"),
    ("list(f)", "f.read()", "f.seek(0)", "f.readline()"),
    ("[x for x in f][:2]", "f.seek(0, 2)", "f.read()", "f.seek(0, 0)", "f.read(4)"),
    ("next(f)", "f.read(1)", "sorted(f)", "next(f, 'none')"),
    ("f.readable()", "f.writable()", "f.seekable()", "f.isatty()", "f.closed", "f.name", "f.mode"),
    ("f.close()", "f.close()", "f.read()", "f.closed", "f.readline()", "f.seek(0)", "f.tell()"),
    ("f.readlines(5)", "f.readline()", "f.read(None)"),
    ("f.writable()", "f.truncate()", "f.flush()"),
)
_BINARY_READS: tuple[tuple[str, ...], ...] = (
    (
        "f.seek(3)",
        "f.read(2)",
        "f.tell()",
        "f.seek(1, 1)",
        "f.seek(-1, 2)",
        "f.read()",
        "f.seek(-9)",
        "f.seek(0, 5)",
    ),
    ("f.read(2)", "f.tell()", "next(f)", "f.tell()", "f.seek(99)", "f.read()", "f.tell()"),
    ("f.write(b'x')", "f.write('x')"),
)
_TEXT_READS: tuple[tuple[str, ...], ...] = (
    ("f.tell()", "f.seek(0, 2)", "f.tell()", "f.seek(0)", "f.tell()"),
    ("f.seek(1, 1)", "f.seek(-1, 2)", "f.seek(-1)", "f.seek(0, 5)", "f.seek(0, 1)"),
    ("f.encoding.lower()", "f.errors", "f.write('x')", "f.write(b'x')"),
    ("next(f, '')", "f.tell()"),
)
_NEWLINES = ("None", "''", "'\\n'", "'\\r'", "'\\r\\n'")
_ENCODINGS = (
    ("latin", ", encoding='latin-1'"),
    ("latin", ", encoding='cp1252'"),
    ("latin", ", encoding='iso-8859-15'"),
    ("latin", ", encoding='ascii'"),
    ("latin", ", encoding='ascii', errors='ignore'"),
    ("latin", ", encoding='utf-8', errors='replace'"),
    ("latin", ", errors='backslashreplace'"),
    ("invalid", ", errors='ignore'"),
    ("bom", ", encoding='utf-8-sig'"),
    ("bom", ", encoding='UTF8'"),
    ("utf16", ", encoding='utf-16'"),
    ("utf16", ", encoding='utf-16-le'"),
    ("unicode", ", encoding='utf_8'"),
    ("unicode", ", encoding='cp1252', errors='replace'"),
    ("unicode", ", encoding='koi8-r'"),
    ("lf", ", encoding='no-such-codec'"),
    ("lf", ", encoding='hex'"),
)
_TEXTS = ("'plain\\n'", "'a\\nb\\r\\nc\\r'", "'é€😀\\n'", "''")
_WRITES: tuple[tuple[str, ...], ...] = (
    ("f.write({t})", "f.write('z')", "f.close()", "f.write('q')"),
    ("f.writelines([{t}, 'q\\n'])", "f.flush()", "f.write({t})"),
    ("f.write({t})", "f.flush()", "f.flush()", "f.tell()"),
    ("f.read()", "f.readline()", "list(f)", "f.write(3)", "f.write(b'x')", "f.write({t})"),
    ("print({t}, 1, file=f)", "print('a', 'b', sep='-', end='!', file=f)"),
)
_UPDATES: tuple[tuple[str, ...], ...] = (
    ("f.write('AB')", "f.tell()", "f.seek(0)", "f.read()", "f.write('end')"),
    ("f.seek(2)", "f.write('XY')", "f.tell()", "f.seek(0)", "f.read()"),
    ("f.truncate(3)", "f.seek(0)", "f.read()"),
    ("f.read(2)", "f.seek(0, 2)", "f.write('tail')", "f.seek(0)", "f.readlines()"),
    ("f.seek(0, 2)", "f.tell()", "f.truncate()", "f.truncate(0)", "f.seek(0)", "f.write('n')"),
    ("f.seek(20)", "f.write('far')", "f.seek(0)", "f.read()"),
    ("f.readline()", "f.seek(0)", "f.truncate(1)", "f.flush()", "f.write('w')", "f.flush()", "f.write('v')"),
    ("f.read()", "f.write('after')", "f.seek(0)", "f.read()"),
    ("f.readline()", "f.write('!')", "f.seek(0)", "f.read()"),
)
_CUTS_CHARACTERS = (_UPDATES[0], _UPDATES[1], _UPDATES[2], _UPDATES[5])
"""In a file with long characters these leave half a character, which text of the python sandbox cannot hold."""
_WRONG_MODES = ("", "rw", "q", "r++", "rbt", "b", "+", "rr", "U", "wa")
_WRONG_OPTIONS = (
    ("rb", ", encoding='utf-8'"),
    ("rb", ", errors='strict'"),
    ("rb", ", newline=''"),
    ("r", ", newline='x'"),
    ("r", ", buffering=0"),
    ("r", ", errors='no-such-handler'"),
)


def programs() -> list[FileProgram]:
    """Every program."""
    return [*_readers(), *_writers(), *_updaters(), *_wrong()]


def source(number: int, program: FileProgram) -> str:
    """A function that runs a program in the folder of its number."""
    lines = [
        f"def program_{number}():",
        "    out = []",
        "    try:",
        f"        f = open('p{number}/file', {program.mode!r}{program.options})",
        "    except Exception as error:",
        "        return [describe(error)]",
    ]
    for expression in program.expressions:
        lines += [
            "    try:",
            f"        out.append(repr({expression}))",
            "    except Exception as error:",
            "        out.append(describe(error))",
        ]
    return "\n".join([*lines, "    f.close()", "    return out"])


DESCRIBE = """
def describe(error):
    name = type(error).__name__.replace("UnsupportedOperation", "OSError")
    return name if isinstance(error, (OSError, LookupError)) else f"{name}: {error}"
"""
"""The words of an operating system error differ between systems; those of the others are compared too."""


def batch(numbered: list[tuple[int, FileProgram]]) -> str:
    """One piece of code that runs programs and ends with their outcomes."""
    functions = "\n".join(source(number, program) for number, program in numbered)
    calls = ", ".join(f"program_{number}()" for number, _ in numbered)
    return f"{DESCRIBE}\n{functions}\noutcomes = [{calls}]\n"


def _readers() -> Iterator[FileProgram]:
    for content in INPUTS:
        for expressions in (*_READS, *_TEXT_READS):
            yield FileProgram(content, "r", "", expressions)
        for expressions in (*_READS, *_BINARY_READS):
            yield FileProgram(content, "rb", "", expressions)
    for content in ("lf", "crlf", "mixed"):
        for newline in _NEWLINES[1:]:
            for expressions in _READS[:5]:
                yield FileProgram(content, "r", f", newline={newline}", expressions)
    for content, options in _ENCODINGS:
        for expressions in (_READS[0], _READS[2], _TEXT_READS[2]):
            yield FileProgram(content, "r", options, expressions)


def _writers() -> Iterator[FileProgram]:
    for mode, content in (("w", "lf"), ("w", ""), ("a", "lf"), ("a", ""), ("x", ""), ("x", "lf")):
        for text in _TEXTS:
            for expressions in _WRITES:
                yield FileProgram(content, mode, "", tuple(each.replace("{t}", text) for each in expressions))
    for newline in _NEWLINES:
        for text in _TEXTS[:3]:
            yield FileProgram("", "w", f", newline={newline}", (f"f.write({text})", "f.tell()"))
    for encoding in (
        "latin-1",
        "cp1252",
        "ascii",
        "utf-16",
        "utf-16-le",
        "utf-8-sig",
        "utf-32",
        "koi8-r",
        "shift_jis",
    ):
        for mode, content in (("w", ""), ("a", "")):
            for text in (*_TEXTS[:3], "'caf\\u00e9'"):
                yield FileProgram(
                    content, mode, f", encoding={encoding!r}", (f"f.write({text})", "f.write('b\\n')")
                )
    for errors in ("ignore", "replace", "xmlcharrefreplace", "backslashreplace", "namereplace"):
        yield FileProgram("", "w", f", encoding='ascii', errors={errors!r}", ("f.write('é€')",))
    for mode, content in (("wb", ""), ("ab", "lf"), ("xb", "")):
        yield FileProgram(
            content, mode, "", ("f.write(b'a\\x00\\xff\\r\\n')", "f.write('s')", "f.tell()", "f.read()")
        )
        yield FileProgram(
            content, mode, "", ("f.writelines([b'1', b'2'])", "f.flush()", "f.write(b'3')", "f.close()")
        )


def _updaters() -> Iterator[FileProgram]:
    for content in ("lf", "crlf", "unicode", "empty", "long"):
        for mode in ("r+", "w+", "a+"):
            for expressions in _UPDATES:
                if content == "unicode" and expressions in _CUTS_CHARACTERS:
                    continue
                yield FileProgram(content, mode, "", expressions)
                is_misreported = (
                    mode == "a+" and "f.tell()" in expressions
                )  # CPython counts from where the last seek went
                if content in ("lf", "unicode") and not is_misreported:
                    binary = tuple(_as_bytes(each) for each in expressions)
                    yield FileProgram(content, f"{mode}b", "", binary)


def _wrong() -> Iterator[FileProgram]:
    for mode in _WRONG_MODES:
        yield FileProgram("lf", mode, "", ("f.read()",))
    for mode, options in _WRONG_OPTIONS:
        yield FileProgram("lf", mode, options, ("f.read()",))
    for mode in ("r", "rb", "r+"):
        yield FileProgram("", mode, "", ("f.read()",))


def _as_bytes(expression: str) -> str:
    return expression.replace("f.write('", "f.write(b'")
