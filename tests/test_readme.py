"""What the README shows is true: its program runs, and its picture is current."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminals import runs

README = Path(__file__).parent.parent / "README.md"
SCREEN_LINES = 55


def test_it_fits_on_a_screen() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= SCREEN_LINES


@pytest.mark.timeout(120)
def test_the_picture_shows_what_the_demo_prints_today() -> None:
    script = README.parent / "scripts" / "make_picture.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run python scripts/make_picture.py\n{done.stderr}"


def test_the_lines_for_embedding_run(tmp_path: Path) -> None:
    [lines] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shop").mkdir()
    edit = runs("open('report.py', 'w').write('print(42)')")
    (tmp_path / "script.json").write_text(json.dumps([edit, "Fixed."]))
    done = subprocess.run(
        [sys.executable, "-c", lines],
        env={
            "HOLDFAST_HOME": str(tmp_path / "home"),
            "HOLDFAST_MODEL": f"scripted:{tmp_path / 'script.json'}",
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Proposed(value='Fixed.', proposals=('report.py',))" in done.stdout
    assert "('world.write', 'stage', 'ok')" in done.stdout
