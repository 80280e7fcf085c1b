"""One session for the duration of a block: the shortest way in for a program."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.app.runtime import Runtime
from holdfast.core import Limits, Toolset
from holdfast.core.errors import InvalidInput
from holdfast.models import Model
from holdfast.policy import Policy
from holdfast.session import Approver, Session, SessionOptions


@asynccontextmanager
async def open(
    model: Model | str | None = None,
    *,
    workspace: str | Path | None = None,
    policy: Policy | str | None = None,
    resume: str | None = None,
    name: str | None = None,
    limits: Limits | None = None,
    toolsets: Sequence[Toolset] = (),
    approver: Approver | None = None,
    home: str | Path | None = None,
) -> AsyncIterator[Session]:
    """A session, new or resumed, for the duration of the block."""
    if resume is not None and (workspace is not None or name is not None or limits is not None):
        raise InvalidInput(
            "a resumed session keeps its workspace, name and limits", hint="omit them with resume="
        )
    options: SessionOptions = {"model": model, "policy": policy, "toolsets": toolsets, "approver": approver}
    runtime = await Runtime.start(home=home)
    try:
        if resume is not None:
            yield await runtime.resume(resume, **options)
        else:
            yield await runtime.create(workspace=workspace, name=name, limits=limits, **options)
    finally:
        await runtime.close()
