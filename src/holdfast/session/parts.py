"""What one session is joined from. Which parts they are is decided by `app`; `assemble` joins them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.core import Clock, Paths, SessionId, Toolset
from holdfast.gate import Tree
from holdfast.guests import Guest
from holdfast.models import Model
from holdfast.policy import Policy
from holdfast.session.approver import Approver
from holdfast.session.settings import Settings
from holdfast.store import Home, Journal, Store
from holdfast.world import StagedWorld, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a session lives on disk."""

    home: Home
    root: Path
    """The workspace."""
    view: World
    """Where an engine that works on a folder does its work: a copy, whose changes are judged afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything a session is made of; each may be a twin in memory."""

    journal: Journal
    store: Store
    staged: StagedWorld
    """The workspace and what is staged over it: the one that the engine, the gate and the person see."""
    paths: Paths
    policy: Policy
    model: Model | None
    guest: Guest
    settings: Settings
    clock: Clock
    toolsets: Sequence[Toolset] = ()
    """Tools that act outside the workspace."""
    language: Sequence[Toolset] = ()
    """Operations of the guest's own language."""
    secrets: tuple[str, ...] = ()
    """What no result may show."""
    tree: Tree | None = None
    """What it may spend together with its forks."""
    approver: Approver | None = None
    can_ask: bool = True
    place: Place | None = None
    """None for a session in memory."""
    closers: Sequence[Callable[[], Awaitable[None]]] = ()
    """What is to be closed with the session."""
    on_close: Callable[[SessionId], None] = lambda _: None
