"""Approvals: prompts for each consequential call in a scripted day of work over files, git, fetch, time and shell tools.

The day has the shape of recorded work: an agent edits the files of a few folders, looks at git, fetches pages of a few hosts,
converts times and runs commands. Every call needs approval. Before: a person approves the exact call for the session. After: the
person accepts the second-narrowest offer for the session.
"""

import random

from holdfast.core import (
    ArgumentRoles,
    Call,
    CommandTarget,
    Coverage,
    JsonObject,
    Role,
    Target,
    Tool,
    call_id,
    is_covered,
)
from holdfast.gate import find_offers
from holdfast.policy import LexicalPaths, contents_of, targets_of

CALLS = 400
GOAL = 0.16
Made = tuple[Call, Tool, tuple[Target, ...]]


def _tool(name: str, *, is_read_only: bool = False, **roles: Role) -> Tool:
    return Tool(
        name=name,
        roles={argument: ArgumentRoles(default=(role,)) for argument, role in roles.items()},
        is_read_only=is_read_only,
    )


EDIT = _tool("filesystem.edit_file", path="write-path", edits="content")
WRITE = _tool("filesystem.write_file", path="write-path", content="content")
READ = _tool("filesystem.read_text_file", is_read_only=True, path="read-path", head="none", tail="none")
LOG = _tool("git.git_log", is_read_only=True, repo_path="read-path", max_count="none")
DIFF = _tool("git.git_diff", is_read_only=True, repo_path="read-path", target="none", context_lines="none")
ADD = _tool("git.git_add", repo_path="write-path", files="none")
FETCH = _tool("fetch.fetch", is_read_only=True, url="fetch-url", max_length="none", start_index="none")
CONVERT = _tool(
    "time.convert_time", is_read_only=True, source_timezone="none", time="none", target_timezone="none"
)
RUN = _tool("shell.run", argv="command")
FOLDERS = {"src/billing": 9, "src/billing/tests": 7, "docs/guides": 6, "src/api": 8}
HOSTS = {"https://docs.example": 14, "https://specs.example": 6, "https://packages.example": 8}
COMMANDS = [
    *(["git", "log", f"-{count}"] for count in range(1, 9)),
    *(["git", "show", f"HEAD~{count}"] for count in range(6)),
    *(["pytest", "-q", f"tests/test_{name}.py"] for name in ("billing", "api", "totals", "rates", "users")),
    *(["ruff", "check", f"src/{name}"] for name in ("billing", "api", "core")),
    *(["npm", "test", "--", name] for name in ("cart", "login", "search")),
]  # fmt: skip


def day(seed: int = 22) -> list[Made]:
    """The consequential calls of a day, in bursts: an agent stays with one kind of work for a while."""
    chance = random.Random(seed)
    made: list[Made] = []
    while len(made) < CALLS:
        tool = chance.choices(
            (EDIT, WRITE, READ, LOG, DIFF, ADD, FETCH, CONVERT, RUN), (24, 8, 12, 4, 8, 4, 12, 3, 25)
        )[0]
        folder = chance.choice(list(FOLDERS))
        for _ in range(chance.randint(2, 7)):
            made.append(_call(tool, _arguments(tool, folder, chance), len(made)))
    return made[:CALLS]


def _arguments(tool: Tool, folder: str, chance: random.Random) -> JsonObject:
    path = f"{folder}/file_{chance.randrange(FOLDERS[folder])}.py"
    number = chance.randint(1, 10_000)
    match tool.name:
        case "filesystem.edit_file":
            return {"path": path, "edits": [{"oldText": f"{number}", "newText": "x"}]}
        case "filesystem.write_file":
            return {"path": path, "content": f"{number}"}
        case "filesystem.read_text_file":
            return {"path": path, "head": chance.choice([20, 50, 100])}
        case "git.git_log":
            return {"repo_path": ".", "max_count": chance.choice([1, 3, 5, 10, 20])}
        case "git.git_diff":
            return {"repo_path": ".", "target": chance.choice(["HEAD", "main", f"HEAD~{number % 9}"])}
        case "git.git_add":
            return {"repo_path": ".", "files": [path]}
        case "fetch.fetch":
            host = chance.choice(list(HOSTS))
            return {"url": f"{host}/page-{chance.randrange(HOSTS[host])}", "max_length": 5000}
        case "time.convert_time":
            return {"source_timezone": "UTC", "time": f"{number % 24:02}:00", "target_timezone": "Asia/Tokyo"}
        case _:
            return {"argv": list(chance.choice(COMMANDS))}


def _call(tool: Tool, arguments: JsonObject, number: int) -> Made:
    call = Call(id=call_id(1, number + 1), operation=tool.name, arguments=arguments)
    argv = arguments.get("argv")
    if isinstance(argv, list):
        return call, tool, (CommandTarget(role="command", argument="argv", words=tuple(map(str, argv))),)
    return call, tool, targets_of(tool, arguments, LexicalPaths())


def prompts(calls: list[Made], *, accepted: int) -> int:
    """How often a person is asked who accepts the n-th narrowest offer, or the widest if there are fewer."""
    given: list[Coverage] = []
    asked = 0
    for call, tool, targets in calls:
        if any(is_covered(each, call, tool, targets) for each in given):
            continue
        asked += 1
        offers = find_offers(call, tool, targets, contents_of(tool, call.arguments))
        given += offers[: accepted + 1][-1:]
    return asked


def main() -> None:
    """Print prompts per consequential call."""
    calls = day()
    before, after = (prompts(calls, accepted=number) / len(calls) for number in (0, 1))
    print(f"{'consequential calls in the day':<54}{len(calls):>9}")
    print(f"{'prompts a call, exact grants for the session':<54}{before:>9.3f}")
    print(f"{'prompts a call, second-narrowest offer accepted':<54}{after:>9.3f}  (goal {GOAL})")


if __name__ == "__main__":
    main()
