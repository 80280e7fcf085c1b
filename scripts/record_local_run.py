"""Record a whole session with a real local model: sandbox, gate, escalation and result.

    pip install 'holdfast[local]'
    python scripts/record_local_run.py docs/recorded/local-run.md qwen2.5-coder-1.5b.gguf

Only the tasks and the person, who approves every request, are scripted. The model may act differently in another run or on
another machine; the page records what it does.
"""

import argparse
import asyncio
import hashlib
import os
import platform
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli.views.narrator import Narrator
from holdfast.cli.views.tables import audit_table
from holdfast.core import Escalation, Ok, Outcome, Proposed, Response
from holdfast.models import ModelSettings, create_model

TASKS = (
    "Count the lines of /workspace/notes.txt and write the number into /workspace/count.txt.",
    "Find the longest line of /workspace/notes.txt and write it into /workspace/longest.txt.",
)
WANTED = {"count.txt": "5", "longest.txt": "sharpen the knives"}
NOTES = "buy rope\nmend the net\npaint the hull\ncall the harbour\nsharpen the knives\n"
POLICY = """\
policy: recorded
description: Reads inside pass, writes inside ask, everything else is denied.
rules:
  - name: only-files
    deny: ["llm.*", "session.*"]
    because: a small model works better with few tools
  - name: read-inside
    allow: "*"
    roles: [read-path]
    inside: true
    because: reading inside the project is harmless
  - name: look-around
    allow: [world.list, world.search]
    because: looking around inside the project is harmless
  - name: ask-before-writing
    escalate: "*"
    roles: [write-path, delete-path]
    inside: true
    because: the person wants to see every change first
"""


async def record(model_file: Path, threads: int) -> str:
    """Run the tasks in a new data directory and return the page."""
    lines: list[str] = []

    def say(text: str, _tone: str = "plain") -> None:
        print(text, flush=True)
        lines.append(text)

    async def approve(escalation: Escalation) -> Response:
        say(f"  person  reads: {escalation.call.operation} {escalation.call.arguments}, and approves it once")
        return Response(verdict="approve")

    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        workspace = place / "project"
        workspace.mkdir()
        (workspace / "notes.txt").write_text(NOTES)
        (place / "policy.yaml").write_text(POLICY)
        model = create_model(
            f"local:{model_file.resolve()}",
            settings=ModelSettings(timeout_seconds=3600, max_tokens=300, local_threads=threads),
        )
        runtime = await Runtime.start(home=place / "home")
        started = time.monotonic()
        try:
            session = await runtime.create(
                model=model, workspace=workspace, policy=str(place / "policy.yaml"), approver=approve
            )
            session.follow(Narrator(say, shows_code=True))
            for task in TASKS:
                say(f"person  {task}")
                say(f"outcome {_describe(await session.send(task))}\n")
            audit = list(audit_table(session.audit(), width=110))
            spent = session.budget.spent
        finally:
            await runtime.close()
            await model.close()
        seconds = time.monotonic() - started
        found = [_verdict(workspace / name, wanted) for name, wanted in WANTED.items()]
    return _page(
        model_file, lines, audit, found, f"{spent.tokens} tokens, {spent.cost_usd} USD, {seconds:.0f} seconds"
    )


def _verdict(path: Path, wanted: str) -> str:
    if not path.exists():
        return f"- `{path.name}` is missing: the model did not write it"
    written = path.read_text()
    if written.strip() == wanted:
        return f"- `{path.name}` is correct: `{written.strip()}`"
    return f"- `{path.name}` is wrong: `{written.strip()!r}`"


def _describe(outcome: Outcome) -> str:
    kind = type(outcome).__name__.lower()
    return f"{kind}: {outcome.value}" if isinstance(outcome, Ok | Proposed) else f"{kind}: {outcome}"


def _page(model_file: Path, lines: list[str], audit: list[str], found: list[str], spent: str) -> str:
    transcript, table, files = "\n".join(lines), "\n".join(audit), "\n".join(found)
    day = datetime.now(UTC).date().isoformat()
    return f"""\
# A recorded run with a local model

`scripts/record_local_run.py` made this recording on {day}; you can run it yourself. The model is
`{model_file.name}` (SHA-256 `{_sha256(model_file)}`),
run by xllamacpp {version("xllamacpp")} on {os.cpu_count()} processors, {platform.system()}
{platform.machine()}. The model's replies are not
scripted. The person is: a script approves every request.

Each task has two steps: read one file, then write another. The policy allows reads, and every write needs approval. A model
this small cannot do much more. Check the files in the workspace, not what the model says about them. The first task resembles
the example in the model's prompt; the second does not.

```text
{transcript}
```

The workspace afterwards:

{files}

Spent: {spent}.

The audit:

```text
{table}
```
"""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Record, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path)
    parser.add_argument("model_file", type=Path, metavar="FILE.gguf")
    parser.add_argument(
        "--threads", type=int, default=0, help="threads of the engine; use 1 on a busy machine"
    )
    arguments = parser.parse_args()
    page = asyncio.run(record(arguments.model_file, arguments.threads))
    arguments.page.parent.mkdir(parents=True, exist_ok=True)
    arguments.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
