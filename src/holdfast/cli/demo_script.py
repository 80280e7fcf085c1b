"""The script of `holdfast demo`: a small project with a bug, a task, and a model with fixed replies."""

from pathlib import Path

from holdfast.cli.approvals.view import show_escalation
from holdfast.cli.terminal.console import Console
from holdfast.core import Escalation, Response, SystemClock
from holdfast.models import ScriptedModel, use

DEMO_MODEL = "scripted:demo"
DEMO_ANSWERS = "the script demo-answers"
DEMO_POLICY = Path(__file__).with_name("demo_policy.yaml")

TASK = "report.py ignores the quantity. Fix it, note it in CHANGES.md, and delete the old report."

TESTS_TASK = "Add a function that counts the items sold, with a test, and make the test pass."

FILES = {
    "report.py": '''\
"""Adds up sales.csv."""

import csv


def total(path: str) -> float:
    with open(path) as lines:
        return sum(float(row["price"]) for row in csv.DictReader(lines))


print(f"total: {total('sales.csv'):.2f}")
''',
    "sales.csv": "item,price,quantity\nrope,12.50,4\nanchor,80.00,1\nbuoy,7.25,10\n",
    "old-report.csv": "total\n99.75\n",
}

_READ_PROJECT = """\
from pathlib import Path

source = Path("report.py").read_text()
rows = Path("sales.csv").read_text().splitlines()[1:]
print(len(world.list()), "files,", len(rows), "sales")"""

_WRITE_CRON_JOB = """\
try:
    with open("/etc/cron.d/report", "w") as job:
        job.write("@hourly root python3 report.py")
except PermissionError as refusal:
    print(refusal)"""

_FIX_REPORT = """\
fixed = source.replace('float(row["price"])', 'float(row["price"]) * int(row["quantity"])')
Path("report.py").write_text(fixed)
Path("CHANGES.md").write_text("- The total includes the quantity of each sale.\\n")
sum(float(row.split(",")[1]) * int(row.split(",")[2]) for row in rows)"""

_DELETE_OLD_REPORT = """\
Path("old-report.csv").unlink()
print("old-report.csv exists:", Path("old-report.csv").exists())"""


_ADD_COUNT = """\
source = Path("report.py").read_text()
count = '''def count(path: str) -> int:
    with open(path) as lines:
        return sum(1 for row in csv.DictReader(lines))


print'''
Path("report.py").write_text(source.replace("print", count, 1))
Path("test_report.py").write_text('''import unittest

from report import count


class Report(unittest.TestCase):
    def test_count(self) -> None:
        self.assertEqual(count("sales.csv"), 15)
''')"""

_RUN_TESTS = """\
ran = shell.run(["python3", "-m", "unittest", "-q"])
print("exit code", ran["code"], "-", ran["output"].splitlines()[-1])"""

_FIX_BY_PROGRAM = """\
shell.run(["sed", "-i", 's/sum(1 for row/sum(int(row["quantity"]) for row/', "report.py"])
ran = shell.run(["python3", "-m", "unittest", "-q"])
print("exit code", ran["code"], "-", ran["output"].splitlines()[-1])"""


def demo_model() -> ScriptedModel:
    """A model with five fixed replies, and four more if programs can run."""
    return ScriptedModel(
        [
            use("execute_code", {"code": _READ_PROJECT}, text="First I read the project."),
            use(
                "execute_code",
                {"code": _WRITE_CRON_JOB},
                text="An hourly job would keep the report up to date.",
            ),
            use(
                "execute_code",
                {"code": _FIX_REPORT},
                text="That is not allowed, so I skip it. Now I fix the bug itself.",
            ),
            use("execute_code", {"code": _DELETE_OLD_REPORT}, text="Finally, I delete the old report."),
            "Done. report.py multiplies by the quantity (total 202.50), CHANGES.md mentions it, and the old report is gone. "
            "I could not set up an hourly job: that file is outside the workspace.",
            use("execute_code", {"code": _ADD_COUNT}, text="I stage the function and its test."),
            use("execute_code", {"code": _RUN_TESTS}, text="I run the tests over what is staged."),
            use(
                "execute_code",
                {"code": _FIX_BY_PROGRAM},
                text="It counts sales, not items. I fix it with sed.",
            ),
            "Done. count() adds up the quantities, and its test passes.",
        ],
        name=DEMO_MODEL,
    )


class DemoAnswers:
    """Approves in place of the user, and says so."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def __call__(self, escalation: Escalation) -> Response:
        show_escalation(self._console, escalation, now_ms=SystemClock().now_ms())
        self._console.say("  You are not asked: the script `demo-answers` runs /approve for you.", "dim")
        return Response(verdict="approve", reason="answered by the script demo-answers")
