"""One session for the duration of a block: the shortest way in for a program."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.runtime import Runtime
from holdfast.core import Limits, Toolset
from holdfast.core.errors import InvalidInput
from holdfast.guests import Engine, Engines, Sandbox
from holdfast.models import Model
from holdfast.policy import Policy
from holdfast.session import Approver, Session, SessionOptions, Settings

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec


@asynccontextmanager
async def open(
    model: Model | str | None = None,
    *,
    workspace: str | Path | None = None,
    policy: Policy | str | None = None,
    sandbox: Sandbox | Engine | None = None,
    resume: str | None = None,
    name: str | None = None,
    description: str = "",
    budget: Limits | str | None = None,
    limits: Limits | None = None,
    toolsets: Sequence[Toolset] = (),
    approver: Approver | None = None,
    instructions: str | None = None,
    can_ask: bool = True,
    needs_model: bool = True,
    home: str | Path | None = None,
    settings: Settings | None = None,
    servers: "Sequence[ServerSpec] | None" = None,
    engines: Engines | None = None,
) -> AsyncIterator[Session]:
    """A session, new or resumed, for the duration of the block.

    The arguments are those of `Runtime.start` and of `Runtime.create` or, with `resume`, of `Runtime.resume`: what you
    leave out comes from config.toml, as on the command line. Pass `settings=Settings()` and `servers=()` to ignore the
    files of the data directory.
    """
    kept = (workspace, name, budget, limits)
    if resume is not None and any(value is not None for value in kept):
        raise InvalidInput(
            "a resumed session keeps its workspace, name and budget", hint="omit them with resume="
        )
    options: SessionOptions = {
        "model": model,
        "policy": policy,
        "sandbox": sandbox,
        "toolsets": toolsets,
        "approver": approver,
        "instructions": instructions,
        "can_ask": can_ask,
        "needs_model": needs_model,
    }
    runtime = await Runtime.start(home=home, settings=settings, servers=servers, engines=engines)
    try:
        if resume is not None:
            yield await runtime.resume(resume, **options)
        else:
            yield await runtime.create(
                workspace=workspace,
                name=name,
                description=description,
                budget=budget,
                limits=limits,
                **options,
            )
    finally:
        await runtime.close()
