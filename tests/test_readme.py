"""What the README says runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.terminals import runs

README = Path(__file__).parent.parent / "README.md"
SCREEN_LINES = 55


def test_it_fits_on_a_screen() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= SCREEN_LINES


def test_the_lines_for_embedding_run(tmp_path: Path) -> None:
    [lines] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shop").mkdir()
    fixing = runs("open('report.py', 'w').write('print(42)')")
    (tmp_path / "script.json").write_text(json.dumps([fixing, "Fixed."]))
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
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert "Proposed(value='Fixed.', proposals=('report.py',))" in done.stdout
    assert "('world.write', 'stage', 'ok')" in done.stdout
