"""The pages that explain the words: their programs run, and print what the pages say they print."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.support.fork_server import forked_python

PAGES = Path(__file__).parent.parent / "docs" / "concepts"


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_the_program_of_a_page_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    text = (PAGES / page).read_text(encoding="utf-8")
    [(program, printed)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        forked_python(str(tmp_path / "program.py")),
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed
