"""The examples on the tutorial, guide and README pages produce the printed output."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.console_examples import run_page
from tests.cli.terminals import runs

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
FIX = """\
from pathlib import Path
source = Path("report.py").read_text()
Path("report.py").write_text(source.replace("sum(price", "sum(price * quantity"))
Path("old.csv").unlink()
"""
POLICY = """\
policy: ask-first
rules:
  - name: reading
    allow: "*"
    roles: [read-path]
    inside: true
    because: reading is harmless
    examples: {matches: [{world.read: {path: a}}], misses: [{world.read: {path: /etc/a}}]}
  - name: deleting
    escalate: world.delete
    because: you decide which files are deleted
    examples: {matches: [{world.delete: {path: a}}], misses: [{world.read: {path: a}}]}
  - name: proposing
    stage: world.write
    inside: true
    because: changes are staged
    examples: {matches: [{world.write: {path: a, content: b}}], misses: [{world.read: {path: a}}]}
"""


@pytest.mark.parametrize("page", ["tutorial.md", "guides/run-in-a-script.md"])
@pytest.mark.timeout(180)
def test_a_page_can_be_followed_on_a_fresh_machine(page: str, tmp_path: Path) -> None:
    run_page(DOCS / page, tmp_path)


@pytest.mark.timeout(120)
def test_a_session_looks_as_the_readme_says(tmp_path: Path) -> None:
    shop, home = tmp_path / "shop", tmp_path / ".holdfast"
    shop.mkdir()
    (shop / "report.py").write_text("print(sum(price for item, price, quantity in rows))\n")
    (shop / "old.csv").write_text("total\n99.75\n")
    words = "The total ignores the quantity. I fix it and remove the old report."
    fixing = runs(FIX, words) | {"usage": {"input_tokens": 2811, "output_tokens": 164}}
    script = [fixing, "Done: `report.py` includes the quantity, and `old.csv` stays."]
    (tmp_path / "script.json").write_text(json.dumps(script))
    (tmp_path / "ask.yaml").write_text(POLICY)
    assert (
        holdfast("exec", "-w", "shop", "--trust", "-", home=tmp_path, HOLDFAST_HOME=str(home)).returncode == 0
    )
    model = f"scripted:{tmp_path / 'script.json'}"
    (home / "config.toml").write_text(f'model = "{model}"\npolicy = "{tmp_path / "ask.yaml"}"\n')
    run_page(ROOT / "README.md", tmp_path)
    assert "price * quantity" in (shop / "report.py").read_text()
    assert (shop / "old.csv").exists()
