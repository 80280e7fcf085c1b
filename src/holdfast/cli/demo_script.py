"""What the demo rehearses: a small project with a mistake in it, a task, and a model that always says the same."""

from pathlib import Path

from holdfast.cli.approvals.view import show_escalation
from holdfast.cli.terminal.console import Console
from holdfast.core import Escalation, Response
from holdfast.models import ScriptedModel, use

DEMO_MODEL = "scripted:demo"
DEMO_ANSWERS = "the script demo-answers"
DEMO_POLICY = Path(__file__).with_name("demo_policy.yaml")

TASK = "report.py forgets the quantity. Fix it, note it in CHANGES.md, and delete the old report."

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
mended = source.replace('float(row["price"])', 'float(row["price"]) * int(row["quantity"])')
Path("report.py").write_text(mended)
Path("CHANGES.md").write_text("- The total counts the quantity of each sale.\\n")
sum(float(row.split(",")[1]) * int(row.split(",")[2]) for row in rows)"""

_DELETE_OLD_REPORT = """\
Path("old-report.csv").unlink()
print("old-report.csv is there:", Path("old-report.csv").exists())"""


def demo_model() -> ScriptedModel:
    """The rehearsed model: five replies, whatever it is asked."""
    return ScriptedModel(
        [
            use("execute_code", {"code": _READ_PROJECT}, text="I read the project first."),
            use("execute_code", {"code": _WRITE_CRON_JOB}, text="An hourly job would keep the report fresh."),
            use(
                "execute_code",
                {"code": _FIX_REPORT},
                text="Not allowed, so I leave that. Now the mistake itself.",
            ),
            use("execute_code", {"code": _DELETE_OLD_REPORT}, text="Last, the old report."),
            "Done. report.py counts the quantity now (total 202.50), CHANGES.md says so, and the old report is gone. "
            "I could not set up an hourly job: that lies outside the workspace.",
        ],
        name=DEMO_MODEL,
    )


class DemoAnswers:
    """Answers in a person's place, and says so."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def __call__(self, escalation: Escalation) -> Response:
        show_escalation(self._console, escalation)
        self._console.say("  Nobody is asked: the script `demo-answers` says /approve in your place.", "dim")
        return Response(verdict="approve", reason="answered by the script demo-answers")
