"""Programs that Holdfast starts import nothing from the current folder, which an agent may write."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

SOURCES = Path(holdfast.__file__).parent


def command_lines() -> Iterator[tuple[str, list[ast.expr]]]:
    """The expressions of every list, tuple and call that starts with our own interpreter."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Call(args=parts):
                    if len(parts) > 1 and ast.unparse(parts[0]) == "sys.executable":
                        yield str(path.relative_to(SOURCES)), parts
                case _:
                    pass


@pytest.mark.promise("P01")
def test_every_python_that_holdfast_starts_ignores_modules_in_the_current_folder() -> None:
    found = [(path, parts) for path, parts in command_lines() if path != "services/doctor/versions.py"]
    assert len(found) > 5
    for path, parts in found:
        options = {each.value for each in parts if isinstance(each, ast.Constant)}
        assert options & {"-I", "-P"}, (path, ast.unparse(parts[-1]))
