"""Starting a module of ours on the bare interpreter (`python -IS`): a process that confines itself loads little before.

A door of its own, beside `core`.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
_LINES = """\
import sys, types
for name, folder in {packages!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
"""


def stand_ins(package: str) -> str:
    """Lines of Python after which modules of this package, and those of `core`, can be imported.

    The doors above would load far more than is needed: names with nothing in them stand in for them.
    """
    packages = [("holdfast", str(_PACKAGE))]
    packages += [(f"holdfast.{name}", str(_PACKAGE / name)) for name in ("core", package)]
    return _LINES.format(packages=packages)
