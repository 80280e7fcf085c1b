"""Render `holdfast demo` as the picture in the README: docs/pictures/demo.svg.

python scripts/make_picture.py            write the picture
python scripts/make_picture.py --check    exit with 1 if the picture is not current

The demo runs as a user would run it, in a pseudo-terminal and in a new home. What differs between two runs (the temporary
folder, where Holdfast is installed) is replaced; nothing else is.
"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
COLUMNS = 100
_FIRST, _LAST = "model   An hourly job", "  commit  "
_SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


def main() -> int:
    """Write or check the picture."""
    drawn = draw()
    if "--check" in sys.argv[1:]:
        return int(PICTURE.read_text(encoding="utf-8") != drawn)
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


def draw() -> str:
    """The picture of a run of the demo."""
    lines = _without_spinner(_run()).splitlines()
    first = next(number for number, line in enumerate(lines) if _FIRST in line)
    last = next(number for number, line in enumerate(lines) if _LAST in line)
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(Text.from_ansi("\n".join(lines[first : last + 1])), soft_wrap=True)
    svg = console.export_svg(title="holdfast demo", code_format=_SVG, unique_id="demo")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _run() -> str:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": os.defpath,
            "HOME": folder,
            "TMPDIR": folder,
            "HOLDFAST_HOME": f"{folder}/home",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "LANG": "C.UTF-8",
        }
        ours, theirs = pty.openpty()
        demo = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "demo", "--yes"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=folder,
        )
        os.close(theirs)
        written = _read_all(ours)
        if demo.wait() != 0:
            raise RuntimeError(f"the demo failed:\n{written}")
    text = re.sub(rf"{re.escape(folder)}/holdfast-demo-\w+", "~", written)
    return text.replace(f"{ROOT}/src/holdfast", "holdfast")


def _read_all(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux reports EIO when the last program closed the terminal
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


def _without_spinner(written: str) -> str:
    """The text as it stays on the screen: what was erased or overwritten is left out."""
    written = written.replace("\r\n", "\n")
    written = re.sub(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", "", written)
    kept = [line.rsplit("\r", 1)[-1].rsplit("\x1b[K", 1)[-1] for line in written.split("\n")]
    return "\n".join(kept)


if __name__ == "__main__":
    sys.exit(main())
