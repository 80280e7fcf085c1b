"""Records the home that `test_home_0_1.py` opens. It ran once, with the code of version 0.1; it is kept to show how.

    python tests/compat/record_home.py

It writes data/home-0.1.tar.gz (the home `holdfast`, the folder `project` and the scripts of the models, `replies`),
data/export-0.1.zip and data/home-0.1.json, which says what is in them. Everything is recorded in /tmp/holdfast-compat, so
that no path of a real machine is in it. Two things hang on the path of the home: the sessions of teams, and the digest of
a policy in it, under which an answer to a call counts. So the home is called /proc/self/cwd/holdfast, which is the same path
wherever a test unpacks it.
"""

import asyncio
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import holdfast
from holdfast.cli.open_teams import open_broker
from holdfast.core import SystemClock
from holdfast.mcp import McpFiles
from holdfast.store import Home
from holdfast.teams import Pair, TeamMessage, load_roster
from holdfast.teams.pair_log import Notices, PairLog, QueuedMessages

BASE = Path("/tmp/holdfast-compat")
HOME = BASE / "holdfast"
MOVABLE = "/proc/self/cwd/holdfast"
DATA = Path(__file__).parent / "data"
FOREVER_SECONDS = 3_000_000_000
FOREVER_DAYS = 36_500
MESSAGE = "550e8400-e29b-41d4-a716-446655440000"

CONFIG = {
    "model": "scripted:replies/default.json",
    "policy": "mine",
    "sandbox": "python",
    "mode": "code",
    "max_tokens": "8000",
    "auto_compact": "false",
    "max_history_messages": "200",
    "restore_points": "auto",
    "workspace_bytes": "1000000000",
    "workspace_files": "20000",
    "escalation_seconds": f"{FOREVER_SECONDS}",
    "call_seconds": "61",
    "asking.model": "anthropic:claude-sonnet-5-5",
    "asking.base_url": "https://gateway.example.com/v1",
    "asking.key_variable": "COMPANY_KEY",
    "asking.total_seconds": "601",
    "asking.attempts": "6",
    "asking.max_reply_bytes": "4000001",
    "asking.max_tokens": "8001",
    "asking.context_tokens": "128000",
    "asking.temperature": "0.2",
    "asking.thinking": "low",
    "asking.local_threads": "2",
    "code.seconds": "6",
    "code.wall_seconds": "31",
    "code.memory_bytes": "268435456",
    "code.output_bytes": "262144",
    "code.calls": "1001",
    "code.steps": "10000000",
    **{
        f"{table}.{name}": value
        for table in ("budget", "turn_budget")
        for name, value in {
            "tokens": "100000000",
            "cost_usd": "5.50",
            "wall_seconds": "36000",
            "steps": "2000",
            "calls": "50000",
            "iterations": "10000",
            "bytes_written": "50000000",
        }.items()
    },
}

ROSTER = f"""\
settings:
  max_processes: 4
  archive_days: {FOREVER_DAYS}
  budget: {{tokens: 1000000}}
teams:
  alpha: {{project: /proc/self/cwd/project, member: scripted, description: asks}}
  beta:
    project: /proc/self/cwd/project
    member: scripted
    policy: project
    environment: [LANG]
    variables: {{COLOR: blue}}
    budget: {{calls: 1000}}
    asked_by: [alpha, external]
  gamma: {{project: {BASE}/project, member: holdfast, model: "scripted:replies/default.json"}}
"""

POLICY = """\
policy: asking
description: Asks about everything.
rules:
  - name: ask
    escalate: "*"
    because: nothing happens unseen
"""

SERVER = """\
import json, sys
tool = {"name": "keep", "description": "Keep a note.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}},
                            "serverInfo": {"name": "notes", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [tool]}
    elif asked["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "kept"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"""


def run(*words: str, stdin: str = "", codes: tuple[int, ...] = (0,)) -> str:
    """One command; what it wrote to stdout."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(BASE), "HOLDFAST_HOME": MOVABLE, "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *words],
        env=environment,
        cwd=BASE,
        input=stdin,
        capture_output=True,
        text=True,
    )
    print(f"{done.returncode} holdfast {' '.join(words)[:90]}")
    if done.returncode not in codes:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def read(*words: str) -> Any:
    """What a command says as JSON."""
    return json.loads(run(*words, "--json"))


def script(name: str, *replies: object) -> str:
    """A model that says this."""
    (BASE / "replies" / f"{name}.json").write_text(json.dumps(replies, indent=1))
    return f"scripted:replies/{name}.json"


def code(source: str) -> dict[str, object]:
    """A reply that runs Python."""
    return tool("execute_code", {"code": source})


def tool(name: str, arguments: dict[str, object]) -> dict[str, object]:
    part = {"kind": "tool-call", "id": "", "tool": name, "arguments": arguments}
    return {"message": {"role": "model", "parts": [part]}, "usage": {}, "finish": "tool-calls"}


def writes(path: str, text: str) -> dict[str, object]:
    return code(f"open({path!r}, 'w').write({text!r})")


def keeps(text: str) -> dict[str, object]:
    """A call of a tool whose definition and whose target do not depend on our words or on where the home lies."""
    return code(f"total = 6 * 7\nanswer = notes.keep(text={text!r})\nprint(total, answer)")


def configure() -> None:
    run("init")
    for key, value in CONFIG.items():
        run("config", "set", key, value)
    script("default", *["Noted."] * 40)
    (BASE / "project" / "readme.txt").write_text("A project.\n")
    run("init", "--project", "project")
    (HOME / "policies" / "asking.yaml").write_text(POLICY)
    run("mcp", "add", "notes", "--", "python3", "-c", SERVER)
    run("mcp", "annotate", "notes", "--yes", "-m", "none")
    McpFiles(HOME).trust_client("some-editor")


def plain_sessions() -> None:
    model = script("staged", writes("plan.txt", "one\n"), "Staged.", "And I am still here.")
    run("-m", model, "-n", "staged", "write a plan")
    run("pin", "staged")

    replies = [
        each for text in ("first", "second", "third") for each in (writes("notes.txt", text), "Written.")
    ]
    model = script("committed", *replies, *["Noted."] * 20)
    for number, words in enumerate(("begin the notes", "go on", "finish them")):
        run(*(("-r", "committed") if number else ("-m", model, "-n", "committed")), words)
        run("proposals", "commit", "committed")
    run("-r", "committed", "thank you")
    run("rewind", "committed", "--to", "2")
    run("fork", "committed", "--at", "1", "--name", "branch")
    run("rename", "branch", "the-branch")

    run("-m", script("edited", writes("a.txt", "a"), "Done."), "-n", "dropped", "write a")
    run("proposals", "reject", "dropped")
    run("-r", "dropped", "-p", "safe-edit", "-m", script("default-2", *["Noted."] * 9), "go on")

    model = script(
        "denied",
        code("try:\n    open('/etc/hosts', 'w').write('x')\nexcept OSError as e:\n    print(e)"),
        "It was denied.",
    )
    run("-m", model, "-n", "denied", "change the hosts")
    run("-m", script("short"), "-n", "unanswered", "is anybody there?", codes=(1,))
    run(
        "-m",
        script("project", code("print(open('readme.txt').read())"), "Read."),
        "-n",
        "in-project",
        "-w",
        "project",
        "--trust",
        "read it",
    )
    run("exec", "-", stdin="print(1)")
    gone = read("sessions", "--limit", "1")[0]["id"]
    run("delete", gone, "--yes")


def code_sessions() -> None:
    first = "values = [1, 2, 3]\ndef double(n):\n    return n * 2\nlabel = 'kept'"
    session = json.loads(run("exec", "--json", "-", stdin=first))["session"]
    run("rename", session, "variables")
    lisp = '(define values (list 1 2 3)) (define (double n) (* n 2)) (define label "kept") (assert \'(is sky blue) :evidence "seen")'
    session = json.loads(run("exec", "--lang", "lisp", "--json", "-", stdin=lisp, codes=(0, 1)))["session"]
    run("rename", session, "lisp")
    large = "written = open('large.txt', 'w').write('0123456789abcdef' * 80000)"
    session = json.loads(run("exec", "--json", "-", stdin=large))["session"]
    run("rename", session, "large")
    run("proposals", "commit", "large")
    run("exec", "--session", "large", "-", stdin="written = written + 1")


def waiting_sessions() -> None:
    model = script("waiting", keeps("honey"), "It is kept.", "Still here.")
    run("-m", model, "-p", "asking", "-n", "waiting", "keep honey", codes=(5,))
    source = '(define total (* 6 7)) (define (keep what) (notes/keep :text what)) (define answer (keep "tea")) total'
    model = script("waiting-lisp", code(source), "It is kept.", code("(list total answer)"), "Still here.")
    run("-m", model, "-p", "asking", "--sandbox", "lisp", "-n", "waiting-lisp", "keep tea", codes=(5,))
    model = script("waiting-file", writes("answer.txt", "42"), "I see.")
    run("-m", model, "-p", "ask-always", "-n", "waiting-file", "write it", codes=(5,))

    files = ("milk", "count.txt", "other.txt", "last.txt")
    replies = [each for name in files[1:] for each in (writes(name, name), "Written.")]
    model = script("granted", keeps("milk"), "Kept.", *replies, keeps("milk"), "Kept again.")
    answers = (
        ("approve", "--for", "session"),
        ("approve", "--for", "times=3"),
        ("approve", "--for", "session"),
        ("deny", "--reason", "not this one"),
    )
    for number, (name, (verb, *options)) in enumerate(zip(files, answers, strict=True)):
        begin = ("-r", "granted") if number else ("-m", model, "-p", "asking", "-n", "granted")
        run(*begin, f"write {name}", codes=(5,))
        waits = read("waiting", "--session", "granted")
        run(verb, "--session", "granted", _id(waits), *options)
        run("-r", "granted", codes=(0, 3))
        if name == "other.txt":
            last = read("grants", "--session", "granted")[-1]["grant"]["id"]
            run("grants", "revoke", last, "--session", "granted")


def _id(waits: Any) -> str:
    [only] = waits
    return str(only["escalation"]["id"] if "escalation" in only else only["id"])


def budgets() -> None:
    source = "for _ in range(6):\n    open('seen.txt').read() if False else world.list()"
    model = script(
        "funded", code("world.write(path='seen.txt', content='x')"), code(source), "Looked.", *["Noted."] * 20
    )
    run("-m", model, "-n", "funded", "--budget", "calls=5,tokens=900k", "look", codes=(4,))
    run("budget", "add", "funded", "calls=20")
    run("-r", "funded")
    run("fork", "funded", "--name", "funded-fork")
    run("-r", "funded-fork", "-m", script("pause-2", *["Noted."] * 40), "go on")


async def by_library() -> None:
    """What has no command: a pause, an end, a yes for always, a summary."""
    os.environ.update(HOLDFAST_HOME=MOVABLE, HOME=str(BASE))
    os.chdir(BASE)
    settings = holdfast.load_config(Home.default())
    runtime = await holdfast.Runtime.start(settings=settings, servers=McpFiles(HOME).servers())
    for name in ("paused", "resumed", "completed", "aborted", "compacted"):
        session = await runtime.create(name=name)
        await session.send("hello")
        match name:
            case "paused":
                await session.pause()
            case "resumed":
                await session.pause()
                await session.resume()
                await session.note("remark", "taken up again")
            case "completed":
                await session.complete("all done")
            case "aborted":
                await session.abort("no longer wanted")
            case "compacted":
                for number in range(3):
                    await session.send(f"message {number}")
                await session.compact(keep_turns=1)
                await session.send("and now?")
        await session.close()

    async def always(_: object) -> holdfast.Response:
        return holdfast.Response(verdict="approve", scope="always")

    model = script("always", keeps("eggs"), "Kept.")
    session = await runtime.create(model=model, name="always", policy="asking", approver=always)
    await session.send("keep eggs")
    await session.close()
    session = await runtime.resume("funded")
    await asyncio.to_thread(run, "budget", "add", "funded", "tokens=1000")
    await session.close()
    await runtime.close()


async def send_letter() -> None:
    """A letter that is answered."""
    home = Home.default()
    file = home.root / "teams.yaml"
    async with open_broker(load_roster(file), file, home) as (board, _):
        await board.notify("alpha", "beta", "I am away today")
        await board.send("alpha", "beta", "no hurry")
        while (await board.report("alpha", "beta"))[0].state != "answered":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def leave_word() -> None:
    """Word and a letter that nobody has delivered yet; word is kept longer than the command would allow."""
    runtime = await holdfast.Runtime.start()
    pair = Pair(sender="alpha", receiver="beta")
    postbox = PairLog(pair, store=runtime.store, folder=f"{MOVABLE}/teams/default")
    await Notices(postbox, clock=SystemClock()).leave("the build is green", ttl_days=FOREVER_DAYS)
    letter = TeamMessage(id=MESSAGE, text="when you have time", sender="alpha", principal=pair.principal)
    await QueuedMessages(postbox).keep(letter)
    await runtime.close()


def teams() -> None:
    run("teams", "init")
    (HOME / "teams.yaml").write_text(ROSTER)
    run("teams", "check")
    run("teams", "ask", "beta", "hello", "--from", "alpha")
    run("teams", "ask", "beta", "what now?", "--from", "alpha")
    run("teams", "ask", "beta", "from a person", "--thread", "side")
    run("teams", "ask", "gamma", "hello gamma", "--from", "alpha")
    asyncio.run(send_letter())
    asyncio.run(leave_word())


def others() -> None:
    asked: dict[str, object] = {
        "session_id": "0f0e0d0c",
        "cwd": str(BASE / "project"),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "read it",
    }
    run("hook", "claude", stdin=json.dumps(asked))
    asked |= {
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": str(BASE / "project/readme.txt")},
    }
    run("hook", "claude", stdin=json.dumps(asked))
    run("hook", "claude", "-p", "ask-always", stdin=json.dumps(asked))
    model = script("served", keeps("bread"), "Kept.")
    run("-m", model, "-p", "asking", "--yes-to", "ask", "-n", "served", "keep bread")
    run("search", "plan")


def facts() -> dict[str, object]:
    sessions = read("sessions", "--limit", "1000")
    verified = {each["session"]: each for each in read("verify", "--all")}
    tags: set[str] = set()
    for each in sessions:
        shown = read("show", each["id"], "--events")
        tags |= {entry["event"]["event"] for entry in (shown if isinstance(shown, list) else shown["events"])}
    return {
        "sessions": {
            each["id"]: {
                "name": each.get("name"),
                "events": verified[each["id"]]["events"],
                "last_hash": verified[each["id"]]["last_hash"],
            }
            for each in sessions
        },
        "tags": sorted(tags),
        "files": sorted({_pattern(path.relative_to(HOME)) for path in HOME.rglob("*")}),
        "waiting": read("waiting"),
        "grants": read("grants", "--session", "granted"),
        "config": {each["key"]: each["value"] for each in json.loads(run("config", "--json", "show"))},
        "teams": {each["id"]: each["description"] for each in read("teams", "status")},
    }


def _pattern(path: Path) -> str:
    """A path under the home, with * for what is not a name of ours."""
    folder, *below = path.parts
    if folder == "sessions" and below:
        return "/".join((folder, "*", *below[1:2], *("*" for _ in below[2:])))
    if folder == "teams" and len(below) > 1:
        return "/".join((folder, *below[:2], *("*" for _ in below[2:3]), *below[3:]))
    return "/".join((folder, *("*" for _ in below)))


def clean() -> None:
    """One file for the database, and nothing of what this machine's disk looked like."""
    connection = sqlite3.connect(HOME / "holdfast.db")
    connection.execute("UPDATE lease SET host = 'somewhere'")
    connection.commit()
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shutil.rmtree(HOME / "cache" / "signs")
    for path in HOME.rglob("*"):
        assert not path.name.endswith(("-wal", "-shm")), path


def pack() -> None:
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with (
        (DATA / "home-0.1.tar.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in ("holdfast", "project", "replies"):
            archive.add(name, filter=plain)


def main() -> None:
    shutil.rmtree(BASE, ignore_errors=True)
    for name in ("project", "replies"):
        (BASE / name).mkdir(parents=True)
    os.chdir(BASE)
    configure()
    plain_sessions()
    code_sessions()
    waiting_sessions()
    budgets()
    asyncio.run(by_library())
    teams()
    others()
    run("export", "committed", "-o", "export-0.1.zip")
    found = facts()
    clean()
    pack()
    shutil.copy(BASE / "export-0.1.zip", DATA / "export-0.1.zip")
    (DATA / "home-0.1.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
