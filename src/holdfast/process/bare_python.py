"""Start a module of this package on the bare interpreter (`python -IS`), so that a process which confines itself loads little
first.
"""

from pathlib import Path

_HERE = Path(__file__).parent
_LINES = """\
import sys, types
for name, folder in {packages!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
"""


def stub_packages() -> str:
    """Lines of Python after which the modules of `holdfast.process` can be imported.

    The real `__init__.py` of `holdfast` would load far more than is needed; empty packages take its place.
    """
    packages = [("holdfast", str(_HERE.parent)), ("holdfast.process", str(_HERE))]
    return _LINES.format(packages=packages)
