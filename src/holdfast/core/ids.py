"""Ids and names: the only keys, and the only strings that can become part of a path."""

import re
import secrets
import unicodedata
from datetime import UTC, datetime
from typing import NewType

from holdfast.core.clock import Clock
from holdfast.core.errors import InvalidId, InvalidName

SessionId = NewType("SessionId", str)
CallId = NewType("CallId", str)
"""`{turn}.{number}`: the number counts the calls of a turn, so a replayed guest makes each call under the same id."""
EscalationId = NewType("EscalationId", str)
GrantId = NewType("GrantId", str)
Principal = NewType("Principal", str)
"""Who makes a request: `person`, `person:NAME`, `agent`, `external`, `team:NAME`."""

PERSON = Principal("person")
AGENT = Principal("agent")
EXTERNAL = Principal("external")


def named_person(name: str) -> Principal:
    """A person whom a transport knows by name, such as a member of a chat."""
    return Principal(f"{PERSON}:{name}")


def is_person(principal: str) -> bool:
    """Whether a person makes the request, known by name or not."""
    return principal == PERSON or principal.startswith(f"{PERSON}:")


MAX_ID_LENGTH = 128
MAX_NAME_LENGTH = 64
RESERVED = frozenset(
    ["index", "metadata", "last_session", "site-packages", "con", "prn", "aux", "nul"]
    + [f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)]
)

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LETTERS = str.maketrans(
    {
        "ß": "ss",
        "ẞ": "ss",
        "æ": "ae",
        "Æ": "ae",
        "œ": "oe",
        "Œ": "oe",
        "þ": "th",
        "Þ": "th",
        "ø": "o",
        "Ø": "o",
        "ł": "l",
        "Ł": "l",
        "đ": "d",
        "Đ": "d",
        "ð": "d",
        "Ð": "d",
        "ı": "i",
    }
)
"""Latin letters that Unicode does not decompose into ASCII."""
SHORT_ID_LENGTH = 4
_SUFFIX_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def new_session_id(clock: Clock) -> SessionId:
    """Generate an id of the form `YYYY-MM-DD-HH-mm-ss-mmm-rrrr`, lower case, in UTC. The store makes sure it is unique."""
    now_ms = clock.now_ms()
    moment = datetime.fromtimestamp(now_ms // 1000, UTC)
    return SessionId(f"{moment:%Y-%m-%d-%H-%M-%S}-{now_ms % 1000:03d}-{_random_letters(SHORT_ID_LENGTH)}")


def is_short_id(text: str) -> bool:
    """Whether a text can be the random end of an id, which lists show."""
    return len(text) == SHORT_ID_LENGTH and all(letter in _SUFFIX_ALPHABET for letter in text)


def new_token() -> str:
    """Generate twelve random characters, for ids that must be unique within a session."""
    return _random_letters(12)


def _random_letters(count: int) -> str:
    # From one random number: a number for each letter would ask the system each time.
    number = secrets.randbelow(len(_SUFFIX_ALPHABET) ** count)
    letters = []
    for _ in range(count):
        number, place = divmod(number, len(_SUFFIX_ALPHABET))
        letters.append(_SUFFIX_ALPHABET[place])
    return "".join(letters)


def check_session_id(text: object) -> SessionId:
    """Return the id if it is safe as a path component and as a key. Raises InvalidId."""
    if not isinstance(text, str):
        raise InvalidId(f"a session id is text, not {text!r:.40}")
    if not text:
        raise InvalidId("a session id cannot be empty")
    if len(text) > MAX_ID_LENGTH:
        raise InvalidId(f"a session id can have at most {MAX_ID_LENGTH} characters; this one has {len(text)}")
    if not _ID.fullmatch(text) or text.endswith("."):
        raise InvalidId(
            f"{text!r} is not a valid session id",
            hint="use letters, digits, '_', '-' and dots between them",
        )
    if is_reserved(text):
        raise InvalidId(f"{text!r} is reserved")
    return SessionId(text)


def is_reserved(text: str) -> bool:
    """Whether a name is reserved by Holdfast or by an operating system, with or without an extension."""
    return text.lower().split(".", 1)[0] in RESERVED


def sanitise_name(text: str) -> str:
    """Turn a display name into an alias: lower case, `[a-z0-9_.-]`, at most 64 characters. Raises InvalidName."""
    if "\0" in text or "/" in text or "\\" in text or ".." in text:
        raise InvalidName(
            f"{text!r} contains characters that a name cannot have", hint="leave out '/', '\\' and '..'"
        )
    latin = unicodedata.normalize("NFKC", text).translate(_LETTERS)
    plain = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode().strip().lower()
    alias = re.sub(r"-{2,}", "-", re.sub(r"[^a-z0-9_.-]", "-", plain)).strip("-")
    if len(alias) > MAX_NAME_LENGTH:
        alias = alias[:MAX_NAME_LENGTH].rstrip("-.")  # what the cut left at the end
    if not alias:
        raise InvalidName(
            f"{text!r} contains no character that a name can have",
            hint="a name cannot be empty; use a to z or digits",
        )
    if alias.startswith(".") or alias.endswith("."):
        raise InvalidName(f"{text!r} starts or ends with a dot, which a name cannot")
    if is_reserved(alias):
        raise InvalidName(f"{alias!r} is reserved")
    return alias
