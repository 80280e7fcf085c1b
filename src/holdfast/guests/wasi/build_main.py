"""Builds and compiles the component: the program that `component` runs in a process of its own.

CPython for WASI comes with componentize-py; our guest package is imported in it once, and the memory of that moment
becomes the component. Cranelift then makes native code of it.
"""

import os
import shutil
import sys
from pathlib import Path

import holdfast.guests.wasi.component as component
from holdfast.guests.wasi.component import opened_workshop

_KEPT = 3


def main(cache: str, name: str) -> None:
    """Build into the cache unless it is there; the key comes on standard input. Two builders wait for each other."""
    key = bytes.fromhex(sys.stdin.read())
    folder = Path(cache)
    os.umask(0o077)
    with opened_workshop(
        folder, on_wait=lambda: _tell("waiting for another process that builds the sandbox")
    ) as workshop:
        found = component.open_proven(folder, name, key)
        if found is not None:
            os.close(found)
            return
        _build(workshop, folder, name, key)
        _forget_old(folder)


def _build(workshop: Path, folder: Path, name: str, key: bytes) -> None:
    shutil.copytree(component.GUEST, workshop / "app" / "guest", ignore=shutil.ignore_patterns("__pycache__"))
    (workshop / "app" / "app.py").write_text("from guest.entry import WitWorld\n")
    (workshop / "no-packages").mkdir()
    module, image = workshop / "app.wasm", workshop / "app.cwasm"
    _tell("building CPython for the sandbox (1 of 2)")
    _componentize(workshop, module)
    _tell("compiling it for this processor (2 of 2)")
    _compile(module, image)
    descriptor = os.open(image, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        proof = component.proof_of(descriptor, name, key)
    finally:
        os.close(descriptor)
    (workshop / "app.hmac").write_bytes(proof)
    # The proof goes first: an image without one is not trusted, a proof without an image is nothing.
    (workshop / "app.hmac").replace(component.proof_path(folder, name))
    image.replace(component.image_path(folder, name))
    _tell("the sandbox is ready")


def _forget_old(folder: Path) -> None:
    """Keep the newest components: a few installations may share the cache, every version that ever was need not."""
    images = sorted(folder.glob("*.cwasm"), key=lambda image: image.stat().st_mtime, reverse=True)
    for image in images[_KEPT:]:
        image.unlink()
        image.with_suffix(".hmac").unlink(missing_ok=True)


def _componentize(workshop: Path, module: Path) -> None:
    """Call componentize-py as its command line does; it has no other door. Its chatter is ours to keep quiet."""
    import componentize_py  # type: ignore[import-untyped]

    # It unpacks a library, which is to go with the workshop where it is killed.
    os.environ["TMPDIR"] = str(workshop)
    # Otherwise it looks for installed packages and bakes in whatever this interpreter has.
    os.environ["VIRTUAL_ENV"] = str(workshop / "no-packages")
    sys.argv = [
        "componentize-py", "--quiet", "--wit-path", str(component.WIT), "--world", "sandbox",
        "componentize", "--python-path", str(workshop / "app"), "--output", str(module), "app",
    ]  # fmt: skip
    componentize_py.script()
    if not module.exists():
        raise SystemExit("componentize-py made no component")


def _compile(module: Path, image: Path) -> None:
    from wasmtime import component as components

    from holdfast.guests.wasi.wasmtime_config import engine

    compiled = components.Component.from_file(engine(), str(module)).serialize()
    assert isinstance(compiled, bytes | bytearray)
    image.write_bytes(compiled)


def _tell(news: str) -> None:
    print(news, flush=True)
