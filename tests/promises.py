"""The promises of SECURITY.md, each with an id, who could break it and the tests that hold it. Writes docs/security/promises.md:

python -m tests.promises

A test is marked with the promise that it holds: `@pytest.mark.promise("P01")`.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security" / "promises.md"
SECURITY = ROOT / "SECURITY.md"
_MARK = re.compile(
    r'@pytest\.mark\.promise\("(P\d\d)"\)\n(?:(?!async def |def ).*\n)*(?:async )?def (test_\w+)'
)


class Promise(NamedTuple):
    """One promise: what holds, and who would have to fail or cheat for it not to hold."""

    id: str
    text: str
    broken_by: str


PROMISES = (
    Promise(
        "P01",
        "Code from a model runs only in a sandbox, and its only way out is a call to the gate.",
        "a flaw in the engine (Monty, wasmtime, CPython or our Lisp) together with one in the kernel",
    ),
    Promise(
        "P02",
        "The policy judges every call before anything happens, and a call that no rule covers is denied.",
        "you, with a policy that is too wide",
    ),
    Promise(
        "P03",
        "A protected path (files of Holdfast, the policy of the session, what puts another agent behind the gate) and every part of a git "
        "repository are closed to changes by every route, whatever the policy says.",
        "a server that does other things than it is asked, a command of another agent that you approve, and programs outside Holdfast",
    ),
    Promise(
        "P04",
        "An argument that has no role is denied, whatever the schema of the server accepts, at any depth.",
        "you, with a role that does not say what the argument means",
    ),
    Promise(
        "P05",
        "The call that is judged, the call that you see and the call that is executed are the same.",
        "a server that opens a path later, after something else changed it",
    ),
    Promise(
        "P06",
        "An intent is on disk before its effect, refusals are recorded, and a crash loses nothing that was acknowledged.",
        "a disk that reports writes it did not make, and anyone who can write to the data directory",
    ),
    Promise("P07", "No answer means no.", "anyone who can write to the data directory as you"),
    Promise(
        "P08",
        "Snapshots of guests and other files at rest that were changed or replaced are refused, and grant nothing.",
        "anyone who can read the key in the data directory",
    ),
    Promise(
        "P09",
        "A secret that you hand to a server, a provider or a messenger, and a key of the data directory, is in no record and no log, is not shown, and is not handed to anyone else. Files of "
        "the workspace and the variables of a guest are kept as they are.",
        "the server or the provider itself, a guest that encodes what it was allowed to read, and you, if you type a key of the keyring "
        "into a command that does not use the keyring",
    ),
    Promise(
        "P10",
        "Input from models, servers, guests, files and clients is bounded, and no input crashes or hangs the process.",
        "a flaw in a library that no fuzz target reaches, and settings or `import --large` with which you raise a bound",
    ),
    Promise(
        "P11",
        "An imported file decides nothing about this machine, and is imported whole or not at all.",
        "you, when you choose the model and the folder that the file asks for",
    ),
    Promise(
        "P12",
        "What you are shown hides nothing: invisible and lookalike characters are marked, and files that run later say so.",
        "a font or a terminal that draws two ordinary letters alike, and a program that is not in the list",
    ),
    Promise(
        "P13",
        "A guest learns from lists, searches and diffs only what the policy lets it read.",
        "a server that reads files by itself",
    ),
    Promise(
        "P14",
        "The work of one session does not block the others: the event loop is free again within milliseconds.",
        "a guest in Lisp with millions of objects, while Python collects garbage; and in a chat, drawing an answer of megabytes",
    ),
    Promise(
        "P15",
        "The servers of Holdfast accept only clients with a token, and only under their own address.",
        "anyone who can read the token, as you can",
    ),
    Promise(
        "P16",
        "A data directory that cannot be written can still be read and exported.",
        "a temporary folder without room for a copy of the database",
    ),
    Promise(
        "P17",
        "A tool of a server that changes after you accepted it is not offered until you review it.",
        "a server that keeps its description and changes what it does",
    ),
    Promise(
        "P18",
        "A program in the command sandbox changes nothing but its own layer, reaches no host that was not allowed, and sees neither your "
        "keys nor the files that the policy hides.",
        "a flaw in the kernel; in the weaker tier `copy`, one of the walls that `holdfast doctor` lists as missing; and a host that you allow",
    ),
    Promise(
        "P19",
        "In a browser and in a messenger, an answer applies to exactly what was shown there, and only people whom you let in can give one.",
        "anyone who has the device or the account, an extension of the browser, and the operator of the messenger",
    ),
    Promise(
        "P20",
        "Under a policy with labels, no value made of a stranger's words reaches an argument that a rule protects, and no program written after "
        "such words acts, unasked.",
        "a value that you endorsed, a source that you named, and what labels.md lists as not guaranteed",
    ),
)


def marked_tests() -> dict[str, list[tuple[str, str]]]:
    """The tests of each promise: file and name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for id, name in _MARK.findall(path.read_text()):
            found.setdefault(id, []).append((str(path.relative_to(ROOT)), name))
    return found


def page() -> str:
    """The page of promises."""
    lines = [
        "# Promises",
        "",
        "`python -m tests.promises` generates this page. Each promise of [SECURITY.md](../../SECURITY.md) has an id, and tests that hold it.",
        "[attacks.md](attacks.md) lists every attack on the sandboxes, and [limits.md](limits.md) every bound.",
        "",
    ]
    tests = marked_tests()
    for promise in PROMISES:
        lines += [f"## {promise.id}: {promise.text}", "", f"Could be broken by: {promise.broken_by}.", ""]
        lines += ["| test | file |", "|---|---|"]
        lines += [f"| {_sentence(name)} | `{file}` |" for file, name in tests.get(promise.id, [])]
        lines.append("")
    return "\n".join(lines)


def summary() -> str:
    """The promises as the list in SECURITY.md."""
    return "\n".join(f"- **{promise.id}** {promise.text}" for promise in PROMISES)


def with_summary(text: str) -> str:
    """SECURITY.md with the current list of promises."""
    start = text.index("- **P01**")
    end = text.index("\n\n", start)
    return text[:start] + summary() + text[end:]


def _sentence(name: str) -> str:
    return re.sub(r"^(f|w|l)\d+_", "", name.removeprefix("test_")).replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
    SECURITY.write_text(with_summary(SECURITY.read_text()))
