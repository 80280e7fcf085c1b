"""Builds and compiles the component. `component` runs this program in a separate process.

componentize-py brings CPython for WASI. It imports our package `inside` once, and the memory of that moment becomes the component.
Cranelift then compiles it to native code.
"""

import os
import shutil
import sys
from pathlib import Path

import holdfast.guests.wasi.component as component

_MAX_COMPONENTS = 3
_PACKAGE = "guest"
"""The name of `inside` in the component. INVARIANT: it never changes, because saved variables refer to it in their pickles."""


def main(cache: str, name: str) -> None:
    """Build into the cache, unless the component exists. Reads the key from standard input. Waits for another builder."""
    key = bytes.fromhex(sys.stdin.read())
    folder = Path(cache)
    os.umask(0o077)
    with component.build_folder(
        folder, on_wait=lambda: _report("waiting for another process that builds the sandbox")
    ) as build_folder:
        descriptor = component.open_verified(folder, name, key)
        if descriptor is not None:
            os.close(descriptor)
            return
        _build(build_folder, folder, name, key)
        _remove_old(folder)


def _build(build_folder: Path, folder: Path, name: str, key: bytes) -> None:
    shutil.copytree(
        component.INSIDE, build_folder / "app" / _PACKAGE, ignore=shutil.ignore_patterns("__pycache__")
    )
    (build_folder / "app" / "app.py").write_text(f"from {_PACKAGE}.entry import WitWorld\n")
    (build_folder / "no-packages").mkdir()
    module, image = build_folder / "app.wasm", build_folder / "app.cwasm"
    _report("building CPython for the sandbox (1 of 2)")
    _componentize(build_folder, module)
    _report("compiling it for this processor (2 of 2)")
    _compile(module, image)
    descriptor = os.open(image, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        mac = component.compute_hmac(descriptor, name, key)
    finally:
        os.close(descriptor)
    (build_folder / "app.hmac").write_bytes(mac)
    # The HMAC is written first: without its image it has no effect, and an image without one is not trusted.
    (build_folder / "app.hmac").replace(component.hmac_path(folder, name))
    image.replace(component.image_path(folder, name))
    _report("the sandbox is ready")


def _remove_old(folder: Path) -> None:
    """Keep only the newest components; a few installations may share the cache."""
    images = sorted(folder.glob("*.cwasm"), key=lambda image: image.stat().st_mtime, reverse=True)
    for image in images[_MAX_COMPONENTS:]:
        image.unlink()
        image.with_suffix(".hmac").unlink(missing_ok=True)


def _componentize(build_folder: Path, module: Path) -> None:
    """Call componentize-py as its command line does, which is its only interface."""
    import componentize_py  # type: ignore[import-untyped]

    # It unpacks a library, which must be removed with this folder if the process is killed.
    os.environ["TMPDIR"] = str(build_folder)
    # Otherwise it finds the packages of this interpreter and builds them in.
    os.environ["VIRTUAL_ENV"] = str(build_folder / "no-packages")
    sys.argv = [
        "componentize-py", "--quiet", "--wit-path", str(component.WIT), "--world", "sandbox",
        "componentize", "--python-path", str(build_folder / "app"), "--output", str(module), "app",
    ]  # fmt: skip
    componentize_py.script()
    if not module.exists():
        raise SystemExit("componentize-py did not write a component")


def _compile(module: Path, image: Path) -> None:
    from wasmtime import component as components

    from holdfast.guests.wasi.wasmtime_config import engine

    compiled = components.Component.from_file(engine(), str(module)).serialize()
    assert isinstance(compiled, bytes | bytearray)
    image.write_bytes(compiled)


def _report(line: str) -> None:
    print(line, flush=True)
