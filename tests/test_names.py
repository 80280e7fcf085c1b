"""Names mean one thing: no two public classes share one, and a module's name says what it holds."""

import ast
from collections import defaultdict
from pathlib import Path

import holdfast

PACKAGE = Path(holdfast.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
SHARED = {
    # The same idea in each engine.
    "IdleGuest",
    "LimitReached",
    "Worker",
    "WorkerPool",
    # A Lisp pair is the language's own term; a team pair is in the glossary.
    "Pair",
}
"""Names that two classes may share, each with the reason."""
GERUNDS = {
    "testing.py",  # as in `numpy.testing`: fakes for the tests of other people
    "cli/commands/waiting.py",  # the command `holdfast waiting`
}
MAX_MODULES = 22


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(PACKAGE)))
    shared = {name: sorted(where) for name, where in places.items() if len(where) > 1 and name not in SHARED}
    assert shared == {}


def test_no_module_is_named_by_a_bare_gerund() -> None:
    gerunds = {str(path.relative_to(PACKAGE)) for path in MODULES if path.stem.endswith("ing")}
    assert gerunds <= GERUNDS


def test_a_folder_has_few_modules_except_the_commands() -> None:
    folders = {path.parent for path in MODULES} - {PACKAGE / "cli" / "commands"}
    crowded = {
        str(folder.relative_to(PACKAGE)): count
        for folder in folders
        if (count := sum(1 for path in folder.glob("*.py") if path.name != "__init__.py")) > MAX_MODULES
    }
    assert crowded == {}


def test_a_program_that_is_run_and_never_imported_ends_in_main() -> None:
    programs = [path for path in MODULES if _runs_as_a_program(path)]
    named = {path.name for path in programs}
    assert programs
    assert all(name.endswith("_main.py") or name == "__main__.py" for name in named), sorted(named)


def _runs_as_a_program(path: Path) -> bool:
    """Whether the module runs itself when it is started as a script."""
    return 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
