"""The standard library, imported while the component is built: what is not imported then does not exist later."""

import importlib
import sys

_BESIDES = (
    "_strptime",
    "concurrent.futures.thread",
    "email.mime.multipart",
    "email.mime.text",
    "encodings.ascii",
    "encodings.cp1252",
    "encodings.hex_codec",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.punycode",
    "encodings.rot_13",
    "encodings.unicode_escape",
    "encodings.utf_16",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    "encodings.utf_32",
    "encodings.utf_8_sig",
    "importlib.metadata",
    "importlib.resources",
    "json.tool",
    "logging.handlers",
    "unittest.mock",
    "urllib.parse",
    "xml.dom.minidom",
    "xml.etree.ElementTree",
    "xml.sax.saxutils",
)
"""Submodules that programs reach for, or that the library itself imports only at the moment of use."""

_LEFT_OUT = frozenset(
    (
        "antigravity",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "test",
        "this",
        "tkinter",
        "turtle",
        "turtledemo",
        "venv",
    )
)


def import_everything() -> None:
    """Import each module that this build of CPython has; the ones that need threads, sockets or windows are skipped."""
    for name in (*sorted(sys.stdlib_module_names), *_BESIDES):
        if name in _LEFT_OUT or name.startswith("__"):
            continue
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: S112 - a module may fail in any way it likes; then it is simply not there
            continue
