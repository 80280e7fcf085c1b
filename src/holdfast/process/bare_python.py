"""Running a module of this package on the bare interpreter (`python -IS`), so that a process that confines itself loads
little code first.
"""

from pathlib import Path

_HERE = Path(__file__).parent
_LINES = """\
import sys, types
for name, folder in {packages!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
"""


def stub_packages(*more: str) -> str:
    """Return Python code that makes the modules of `holdfast.process`, and of `more` packages, importable.

    Empty packages replace the real `holdfast/__init__.py`, which would load far more than needed.
    """
    names = ("holdfast", "holdfast.process", *more)
    packages = [(name, str(_HERE.parents[1].joinpath(*name.split(".")))) for name in names]
    return _LINES.format(packages=packages)
