"""Source that is written to hurt the analysis, in its own process: a parser that overflows its stack would take the tests along."""

import subprocess
import sys

_PROGRAM = """
from holdfast.policy.flow.python_flow import python_flow

SOURCES = [
    "-" * 50_000 + "1", "(" * 50_000, "a" + ".b" * 25_000, "a" + "()" * 25_000, "[" * 50_000, "not " * 14_000 + "1",
    "lambda:" * 8_000 + "1", "1+" * 29_000 + "1", "a" + "[0]" * 19_000, "x=" * 29_000 + "1", "{1:" * 15_000, "a if b else " * 4_900 + "c",
    "1<" * 29_000 + "1", "await " * 9_000 + "1", "*" * 50_000 + "a,=1", "1**" * 15_000 + "1", "(1," * 10_000 + ")" * 10_000,
    "x and " * 9_000 + "y", "f'{" * 9_000, "\\0", "\\ud800", "\\ufeffx", "x" * 59_999, "def f(): return " * 3_000 + "1",
    "\\n".join(" " * depth + "if x:" for depth in range(90)) + "\\n" + " " * 90 + "y = 1", "[x for " + "y in z for " * 4_000 + "a in b]",
]
for source in SOURCES:
    python_flow(source, tools={}, variables={})
print(len(SOURCES))
"""


def test_no_source_breaks_the_analysis() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "26"), done.stderr[-2000:]
