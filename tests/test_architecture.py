"""The layers hold: imports go down, a package is entered through its `__init__`, and there is no import cycle."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
LAYERS = {
    "core": 0,
    "process": 1,
    "store": 1,
    "policy": 2,
    "world": 2,
    "guests": 2,
    "commands": 2,
    "models": 2,
    "mcp": 2,
    "gate": 3,
    "agent": 4,
    "session": 5,
    "teams": 6,
    "worker": 6,
    "app": 7,
    "config": 6,
    "services": 7,
    "testing": 7,
    "workspace": 7,
    "__init__": 7,
    "cli": 9,
    "web": 8,
    "messengers": 8,
    "__main__": 9,
}
DIRECT_IMPORTS = {
    *(f"holdfast.core.{name}" for name in ("approval_text", "events", "errors", "globs", "projection")),
    *(f"holdfast.process.{path.stem}" for path in (PACKAGE / "process").glob("*.py")),
}
"""Modules that other packages import directly: the words of approvals, events, errors, globs and projections, and the modules of
`process`, because a process that confines itself imports them on the bare interpreter before anything else."""
HEAVY = (
    "pydantic_ai",
    "pydantic",
    "mcp",
    "pydantic_monty",
    "wasmtime",
    "starlette",
    "uvicorn",
    "prompt_toolkit",
    "rich",
    "httpx",
    "yaml",
)


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ".".join(("holdfast", *path.relative_to(PACKAGE).with_suffix("").parts)), path


MODULES = dict(modules())


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Every module of ours that a file imports: at the top, in functions and for the type checker alike."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "holdfast")
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = ("holdfast", *path.relative_to(PACKAGE).parts)[: -node.level]
                source = ".".join((*above, source)).rstrip(".")
            if source.split(".")[0] == "holdfast":
                for alias in node.names:
                    whole = f"{source}.{alias.name}"
                    is_module = whole in MODULES or f"{whole}.__init__" in MODULES
                    yield whole if is_module and alias.name not in exported(source) else source


@cache
def exported(package: str) -> frozenset[str]:
    """The names that a package's `__init__.py` imports: `prune` may be a function that it exports and a module inside the package."""
    path = MODULES.get(f"{package}.__init__")
    if path is None:
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names)


def package_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def test_a_module_imports_from_its_own_package_and_lower_layers() -> None:
    assert {package_of(module) for module in MODULES} <= LAYERS.keys(), (
        "a new package needs a layer, here and in ARCHITECTURE.md"
    )
    wrong = [
        f"{module} (layer {LAYERS[package_of(module)]}) imports {target} (layer {LAYERS[package_of(target)]})"
        for module, path in MODULES.items()
        for target in imported(path)
        if package_of(target) != package_of(module)
        and LAYERS[package_of(target)] >= LAYERS[package_of(module)]
    ]
    assert wrong == []


def test_another_package_is_entered_through_its_init() -> None:
    wrong = [
        f"{module} imports {target} instead of {package_of(target)}"
        for module, path in MODULES.items()
        for target in imported(path)
        if package_of(target) != package_of(module) and target not in DIRECT_IMPORTS and target.count(".") > 1
    ]
    assert wrong == []


@pytest.mark.parametrize("package", sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py")))
def test_an_init_holds_a_docstring_imports_and_all(package: str) -> None:
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
    first, *rest = tree.body
    assert isinstance(first, ast.Expr)
    assert isinstance(first.value, ast.Constant)
    for node in rest:
        is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        assert isinstance(node, ast.Import | ast.ImportFrom) or is_all, f"{package}: {ast.unparse(node)[:80]}"


def test_there_is_no_import_cycle() -> None:
    edges = {
        name: {t if t in MODULES else f"{t}.__init__" for t in imported(path)} & MODULES.keys() - {name}
        for name, path in MODULES.items()
    }
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        _walk(start, edges, path, done)


def _walk(module: str, edges: dict[str, set[str]], path: list[str], done: set[str]) -> None:
    assert module not in path, " -> ".join([*path[path.index(module) :], module])
    if module in done:
        return
    path.append(module)
    for target in sorted(edges[module]):
        _walk(target, edges, path, done)
    path.pop()
    done.add(module)


@pytest.mark.parametrize(
    "words",
    ["import holdfast", "import holdfast.app", "from holdfast.cli import main; main(['--help'])"],
)
def test_nothing_heavy_loads_before_it_is_used(words: str) -> None:
    script = f"import sys\n{words}\nprint('|'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.strip().split("|")}
    assert not loaded & set(HEAVY)


LATER = (
    *(
        "anthropic",
        "openai",
        "pydantic",
        "pydantic_ai",
        "mcp",
        "rich",
        "pygments",
        "httpx2",
        "configparser",
        "pydantic_monty",
        "email",
        "importlib.metadata",
        "importlib.resources",
        "tomllib",
        "csv",
    ),
    *(
        "holdfast.mcp",
        "holdfast.web",
        "holdfast.teams",
        "holdfast.guests.lisp.lang",
        "holdfast.store.postgres",
        "holdfast.services",
        "holdfast.worker",
        "holdfast.cli.chat.slash",
        "holdfast.cli.terminal.picker",
        "holdfast.cli.terminal.pictures",
    ),
    *("holdfast.agent.lisp_flow", "holdfast.store.recovery.recovered_rows", "holdfast.models.provider_model"),
)
"""What a chat loads after its prompt is on the screen, if at all."""


def test_a_chat_loads_only_what_its_prompt_needs(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "import holdfast.cli.main, holdfast.cli.commands.session, holdfast.cli.chat.chat\n"
        "from holdfast.app import Runtime, configured_servers\n"
        "from holdfast.config import load_config\n"
        "from holdfast.store import Home\n"
        "from prompt_toolkit import PromptSession\n"
        "async def opened():\n"
        "    home, project = Home.default(), Path('project')\n"
        "    settings = load_config(home, project=project)\n"
        "    runtime = await Runtime.start(home=home.root, settings=settings, servers=configured_servers(home))\n"
        "    await runtime.create(workspace=str(project))\n"
        "    print('\\n'.join(sys.modules))\n"
        "    await runtime.close()\n"
        "asyncio.run(opened())"
    )
    (tmp_path / "project").mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HOLDFAST_HOME": str(tmp_path / "home"),
        "ANTHROPIC_API_KEY": "a key of nobody",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    assert not {*LATER} & {*done.stdout.split()}
