"""The `git.*` tools: offer commits that were made in the sandbox, and push a branch of the person's repository.

Commits leave the sandbox as objects and one ref, and only after a person accepts them. A push runs outside the sandbox, to the
address that was judged.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from holdfast.commands import (
    AcceptedCommits,
    CommitProposal,
    HostGit,
    SessionSandbox,
    accept_commits,
    check_address,
    find_commit,
    passed_variables,
    propose_commits,
    push_branch,
)
from holdfast.core import (
    ArgumentRoles,
    Call,
    FileEffect,
    JsonObject,
    JudgedEffect,
    Performed,
    Role,
    SessionId,
    Target,
    Tool,
    encode,
    runs_when,
)
from holdfast.core.errors import CommandError, InvalidInput, ToolFailed
from holdfast.core.events import CommitsProposed
from holdfast.policy import GitSettings
from holdfast.store import Store

JudgeEffects = Callable[[Call, Sequence[FileEffect]], Awaitable[tuple[JudgedEffect, ...]]]
"""Judges changes of files without making them. The gate implements it."""
MAX_LISTED = 100
_MAX_CONFIG_BYTES = 262_144
_TEXT: JsonObject = {"type": "string"}


def _tool(verb: str, description: str, needs: JsonObject, may: JsonObject, **roles: tuple[Role, ...]) -> Tool:
    properties = needs | may
    return Tool(
        name=f"git.{verb}",
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(needs),
            "additionalProperties": False,
        },
        returns={"type": "object"},
        roles={name: ArgumentRoles(default=roles.get(name, ("none",))) for name in properties},
    )


_FOLDER: JsonObject = {"type": "string", "description": "the folder of the repository, . by default"}
GIT_TOOLS = (
    _tool(
        "propose",
        "Offer the commits that you made with git in the sandbox to the person, who may accept them as a branch.",
        {},
        {"folder": _FOLDER, "source": {"type": "string", "description": "a branch; HEAD by default"}},
    ),
    _tool(
        "push",
        "Push a branch of the person's repository, such as the one of accepted commits, to an address.",
        {"url": {"type": "string", "description": "a remote, or its address"}, "branch": _TEXT},
        {"folder": _FOLDER, "source": {"type": "string", "description": "the branch to push"}},
        url=("git-remote-url",),
        branch=("branch-name",),
    ),
)


class GitToolset:
    """Executes `git.*` calls for the repository of a workspace."""

    def __init__(
        self,
        sandbox: SessionSandbox,
        *,
        workspace: Path,
        scratch: Path,
        session: SessionId,
        store: Store,
        judge: JudgeEffects,
        record: Callable[[CommitsProposed], Awaitable[None]],
    ) -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._scratch = scratch
        self._session = session
        self._store = store
        self._judge = judge
        self._record = record
        self._git = HostGit()

    def tools(self) -> tuple[Tool, ...]:
        return GIT_TOOLS

    async def obstacle(self, call: Call, targets: Sequence[Target], *, is_staged: bool) -> str:
        if call.operation != "git.push":
            return ""
        folder, source, branch = _pushed(call)
        try:
            await find_commit(
                self._git, workspace=self._workspace, source=source, branch=branch, folder=folder
            )
            await self._push_urls(folder, str(call.arguments["url"]))
        except (CommandError, ToolFailed) as error:
            return f"{error}; {error.hint}" if error.hint else str(error)
        return ""

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Execute one operation."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        match call.operation:
            case "git.propose":
                return await self._propose(call)
            case "git.push":
                return await self._push(call)
            case _:
                raise ToolFailed(f"there is no operation {call.operation!r}")

    async def accept(self, proposed: CommitsProposed, *, replaces: str = "") -> AcceptedCommits:
        """Move the ref of a proposal that a person accepts. `replaces` is the head last accepted. Raises CommandError."""
        try:
            proposal = msgspec.json.decode(await self._store.blob(proposed.proposal), type=CommitProposal)
        except (ValueError, RecursionError):
            raise CommandError("the offered commits cannot be read", hint="propose them again") from None
        shown = (proposed.repository, proposed.ref, proposed.head)
        # The blob decides what happens, and the event what the person sees. In an imported session they may differ.
        if (proposal.repository, proposal.ref, proposal.offered.head) != shown:
            raise CommandError("the commits are not those that were shown", hint="propose them again")
        bundle = await self._store.blob(proposed.bundle)
        return await accept_commits(self._git, proposal, bundle, workspace=self._workspace, replaces=replaces)

    async def _propose(self, call: Call) -> Performed:
        problem: CommandError | None = None
        found = None
        async with self._sandbox.use() as sandbox:
            try:
                found = await propose_commits(
                    sandbox,
                    self._git,
                    workspace=self._workspace,
                    scratch=self._scratch,
                    session=self._session,
                    folder=_folder(call),
                    source=str(call.arguments.get("source") or "HEAD"),
                )
            except CommandError as error:  # raised below: the sandbox is fine, and its processes go on
                problem = error
        if problem is not None:
            raise problem
        if found is None:
            raise InvalidInput("there are no new commits", hint="commit with git in the sandbox first")
        proposal, bundle = found
        offered = proposal.offered
        prefix = "" if proposal.repository == "." else f"{proposal.repository}/"
        effects = [
            FileEffect(path=prefix + each.path, kind="deleted" if each.kind == "deleted" else "modified")
            for each in offered.files
        ]
        denied = [each for each in await self._judge(call, effects) if each.verdict == "deny"]
        if denied:
            raise ToolFailed(
                f"the commits change {denied[0].effect.path!r}, which is denied: {denied[0].reason} (rule {denied[0].rule})"
            )
        subjects = tuple(f"{each.id[:12]} {each.subject}" for each in offered.commits[:MAX_LISTED])
        # What runs later comes first, so that no number of other files hides it.
        changed = sorted((each.path for each in effects), key=lambda path: (runs_when(path) is None, path))
        paths = tuple(changed[:MAX_LISTED])
        await self._record(
            CommitsProposed(
                call=call.id,
                repository=proposal.repository,
                ref=proposal.ref,
                head=offered.head,
                commits=subjects,
                paths=paths,
                more_paths=len(changed) - len(paths),
                proposal=await self._store.put_blob(encode(proposal)),
                bundle=await self._store.put_blob(bundle),
            )
        )
        return Performed(
            result={
                "ref": proposal.ref,
                "commits": list(subjects),
                "files": list(paths),
                "note": "the person accepts or ignores them",
            }
        )

    async def _push(self, call: Call) -> Performed:
        folder, source, branch = _pushed(call)
        pushed = await push_branch(
            self._git,
            await self._push_urls(folder, str(call.arguments["url"])),
            workspace=self._workspace,
            scratch=self._scratch,
            environment=os.environ,
            source=source,
            branch=branch,
            folder=folder,
        )
        for each in pushed:
            if not each.is_pushed:
                raise ToolFailed(f"{each.url} did not take the branch: {each.message}")
        return Performed(
            result={
                "pushed": [{"url": each.url, "branch": each.branch, "commit": each.commit} for each in pushed]
            }
        )

    async def _push_urls(self, folder: str, remote: str) -> Sequence[str]:
        """The addresses that the gate judged. A push to the address as given could go elsewhere: `insteadOf` rewrites it."""
        ended = await self._git.run_with(
            ["-C", str(self._workspace / folder), "config", "--includes", "--list", "-z"],
            environment=passed_variables(os.environ),
            max_output=_MAX_CONFIG_BYTES,
        )
        if ended.code != 0 or len(ended.output) > _MAX_CONFIG_BYTES:
            raise ToolFailed("the configuration of the repository cannot be read")
        urls = GitSettings.parse(ended.output.decode("utf-8", "surrogateescape")).push_urls(remote)
        for url in urls:
            check_address(url)
        return urls


def _folder(call: Call) -> str:
    """The folder of the repository."""
    return str(call.arguments.get("folder") or ".")


def _pushed(call: Call) -> tuple[str, str, str]:
    """Folder, source and branch of a push."""
    branch = str(call.arguments["branch"])
    return _folder(call), str(call.arguments.get("source") or branch), branch
