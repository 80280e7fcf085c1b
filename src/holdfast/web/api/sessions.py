"""Routes of sessions: the list, one session with its conversation, and what a person may do in it."""

from holdfast.core import SessionId, Value
from holdfast.core.errors import InvalidInput, SessionNotReady
from holdfast.gate import AnyControlRequest, CancelTurn, PostMessage
from holdfast.services import ConversationItem, FoundPassage, conversation, request_of_holder, search_sessions
from holdfast.session import Session
from holdfast.store import LeaseHolder, SessionPage, SessionSummary
from holdfast.web.context import WebContext, WebRequest
from holdfast.web.event_feed import LiveText
from holdfast.web.route import get, post
from holdfast.web.session_host import SessionStart

PAGE_EVENTS = 300
MAX_FOUND = 200


class Started(Value):
    """A session that was started."""

    session: SessionId


class MessageBody(Value, forbid_unknown_fields=True):
    """A message to the agent."""

    text: str


class Nothing(Value, forbid_unknown_fields=True):
    """An empty body."""


class Done(Value, omit_defaults=False):
    """Something was done; by the process that holds the session, or here."""

    by_holder: bool


class SessionView(Value, omit_defaults=False):
    """One session: its row of the list, who holds it, and how far its record goes."""

    summary: SessionSummary
    holder: LeaseHolder | None
    is_hosted: bool
    """Whether this web server runs it."""
    row: int
    """The row up to which this is current."""
    live: dict[str, LiveText]
    """What arrives right now, by kind: a reply, thoughts or output. Only of sessions that this server runs."""


class SessionList(SessionPage):
    """A page of the session list. `left` names those whose process ended within a turn: they say that they work, and nothing runs."""

    left: tuple[SessionId, ...] = ()


class ConversationPage(Value, omit_defaults=False):
    """A part of a conversation. `first` is the event that it starts behind; 0 if that is the beginning."""

    items: list[ConversationItem]
    first: int
    last: int


class FeedPosition(Value):
    """The row of the newest event; a stream that starts behind it misses nothing."""

    row: int


async def show_row(request: WebRequest) -> FeedPosition:
    """Where the event stream stands."""
    return FeedPosition(row=request.context.feed.row)


async def list_sessions(request: WebRequest) -> SessionList:
    """One page of the session list."""
    context, query = request.context, request.query
    activity = query.get("activity")
    if activity not in (None, "processing", "waiting"):
        raise InvalidInput(f"{activity!r} is not an activity", hint="use processing or waiting")
    page = await context.store.session_page(
        before=query.get("before"),
        limit=request.number("limit", 50),
        folder=query.get("folder"),
        activity=activity,  # type: ignore[arg-type]
    )
    working = [each.id for each in page.sessions if each.activity == "processing"]
    left = [each for each in working if not await is_running(context, each)]
    return SessionList(sessions=page.sessions, next=page.next, left=tuple(left))


async def search(request: WebRequest) -> list[FoundPassage]:
    """Where words were said, newest first."""
    limit = max(1, min(request.number("limit", 20), MAX_FOUND))
    return await search_sessions(request.context.store, request.query.get("q", ""), limit=limit)


async def start(request: WebRequest) -> Started:
    """Start a session with a message; this server runs it."""
    body = request.given(SessionStart)
    if not body.text.strip():
        raise InvalidInput("the message is empty")
    session = await request.context.hosted.start(body, principal=request.device.principal)
    return Started(session=session)


async def show(request: WebRequest) -> SessionView:
    """One session."""
    context, session = request.context, request.session
    row = await context.store.last_row()
    return SessionView(
        summary=await context.store.summary(session),
        holder=await context.store.holder(session),
        is_hosted=context.hosted.get(session) is not None,
        row=row,
        live=context.feed.live(session),
    )


async def show_conversation(request: WebRequest) -> ConversationPage:
    """The end of a conversation, or the part before an event."""
    store, session = request.context.store, request.session
    last = (await store.summary(session)).events
    upto = min(last, request.number("upto", last))
    first = max(0, upto - request.number("limit", PAGE_EVENTS))
    recorded = [entry for entry in await store.read(session, after=first) if entry.seq <= upto]
    items = conversation((entry.seq, entry.at_ms, entry.event) for entry in recorded)
    return ConversationPage(items=items, first=first, last=upto)


async def send(request: WebRequest) -> Done:
    """Send a message: to the process that holds the session, or by running it here."""
    body = request.given(MessageBody)
    if not body.text.strip():
        raise InvalidInput("the message is empty")
    context, session, principal = request.context, request.session, request.device.principal
    if not context.hosted.is_remote and await is_held_elsewhere(context, session):
        message = PostMessage(text=body.text, principal=principal, transport="web")
        return await ask_holder(context, session, message)
    await context.hosted.send(session, body.text, principal=principal)
    return Done(by_holder=context.hosted.is_remote)


async def cancel(request: WebRequest) -> Done:
    """End the open turn."""
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        return await ask_holder(
            context, session, CancelTurn(principal=request.device.principal, transport="web")
        )
    hosted = context.hosted.get(session)
    if hosted is not None:
        await hosted.cancel()
        return Done(by_holder=False)
    opened = await context.runtime.resume(session, needs_model=False)
    try:
        await opened.cancel()
    finally:
        await opened.close()
    return Done(by_holder=False)


async def is_held_elsewhere(context: WebContext, session: SessionId) -> bool:
    """Whether another process acts for the session: it holds the session, or workers run all sessions of this server."""
    if context.hosted.is_remote:
        await context.store.summary(session)  # raises SessionNotFound
        return True
    return context.hosted.get(session) is None and await context.store.holder(session) is not None


async def is_running(context: WebContext, session: SessionId) -> bool:
    """Whether any process acts for the session."""
    return context.hosted.get(session) is not None or await context.store.holder(session) is not None


async def ask_holder(context: WebContext, session: SessionId, request: AnyControlRequest) -> Done:
    """Let the process that holds a session do something. Raises SessionNotReady with its reason if it refuses."""
    applied = await request_of_holder(context.home, context.store, session, request)
    if applied.error:
        raise SessionNotReady(applied.error)
    return Done(by_holder=True)


class OpenedSession:
    """A session for a short act: the hosted one, or opened without a model for the block. Raises SessionHeld."""

    def __init__(self, context: WebContext, session: SessionId) -> None:
        self._context = context
        self._session = session
        self._opened: Session | None = None

    async def __aenter__(self) -> Session:
        hosted = self._context.hosted.get(self._session)
        if hosted is not None:
            return hosted
        self._opened = await self._context.runtime.resume(self._session, needs_model=False)
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()


ROUTES = (
    get(
        "/api/row", show_row, FeedPosition, "The row of the newest event, to start the event stream behind it"
    ),
    get(
        "/api/sessions",
        list_sessions,
        SessionList,
        "One page of the session list, newest activity first",
        query=("before", "limit", "folder", "activity"),
    ),
    get(
        "/api/search",
        search,
        list[FoundPassage],
        "Where words were said, newest first, as `holdfast search WORDS --json` prints it",
        query=("q", "limit"),
    ),
    post("/api/sessions", start, SessionStart, Started, "Start a session with a message"),
    get("/api/sessions/{session}", show, SessionView, "One session and who holds it"),
    get(
        "/api/sessions/{session}/conversation",
        show_conversation,
        ConversationPage,
        "A part of the conversation, the end by default",
        query=("upto", "limit"),
    ),
    post("/api/sessions/{session}/messages", send, MessageBody, Done, "Send a message to the agent"),
    post("/api/sessions/{session}/cancel", cancel, Nothing, Done, "End the open turn"),
)
