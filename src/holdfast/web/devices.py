"""Devices: browsers that entered with a one-time code, their tokens and rights. They end with the server."""

import hmac
import secrets

from holdfast.core import PERSON, Clock, Principal, Value
from holdfast.core.errors import InvalidInput
from holdfast.store import RIGHTS, Right

CODE_SECONDS = 300
IDLE_SECONDS = 12 * 60 * 60
LONGEST_SECONDS = 7 * 24 * 60 * 60
MAX_NAME = 120


class Device(Value, omit_defaults=False):
    """A browser or a program that may use this server."""

    id: str
    name: str
    right: Right
    entered_ms: int
    seen_ms: int
    principal: Principal = PERSON
    """Whom the record names: the person at this machine, or the owner of an API key."""


class _Code(Value):
    code: str
    right: Right
    expires_ms: int


class _Entry(Value):
    token: bytes
    device: Device


class Devices:
    """The devices of one server process, in memory only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: list[_Code] = []
        self._entries: dict[str, _Entry] = {}

    def new_code(self, right: Right) -> str:
        """A code that is exchanged once, within minutes, for a token with this right."""
        code = secrets.token_urlsafe(24)
        self._codes.append(
            _Code(code=code, right=right, expires_ms=self._clock.now_ms() + CODE_SECONDS * 1000)
        )
        return code

    def enter(self, code: str, *, name: str) -> tuple[str, Device]:
        """Exchange a code for a token. Raises InvalidInput if it was used, is too old or is wrong."""
        now = self._clock.now_ms()
        given = code.encode("utf-8", "replace")
        found = [each for each in self._codes if hmac.compare_digest(each.code.encode(), given)]
        self._codes = [each for each in self._codes if each not in found and each.expires_ms > now]
        if not found or found[0].expires_ms <= now:
            raise InvalidInput(
                "this link was used, is too old, or is wrong", hint="run `holdfast web` again for a new one"
            )
        token = secrets.token_urlsafe(32)
        device = Device(
            id=secrets.token_hex(4), name=name[:MAX_NAME], right=found[0].right, entered_ms=now, seen_ms=now
        )
        self._entries[device.id] = _Entry(token=token.encode(), device=device)
        return token, device

    def tokens(self) -> list[bytes]:
        """The tokens that are valid now."""
        now = self._clock.now_ms()
        self._entries = {
            id: each
            for id, each in self._entries.items()
            if now - each.device.seen_ms < IDLE_SECONDS * 1000
            and now - each.device.entered_ms < LONGEST_SECONDS * 1000
        }
        return [each.token for each in self._entries.values()]

    def device_of(self, token: bytes) -> Device | None:
        """The device with this token, which was seen now."""
        for each in list(self._entries.values()):
            if hmac.compare_digest(each.token, token):
                old = each.device
                device = Device(
                    id=old.id,
                    name=old.name,
                    right=old.right,
                    entered_ms=old.entered_ms,
                    seen_ms=self._clock.now_ms(),
                )
                self._entries[old.id] = _Entry(token=each.token, device=device)
                return device
        return None

    def all(self) -> list[Device]:
        """Every device, in the order in which they entered."""
        return [each.device for each in self._entries.values()]

    def end(self, id: str) -> None:
        """End a device at once. Raises InvalidInput if there is none."""
        if self._entries.pop(id, None) is None:
            raise InvalidInput(f"there is no device {id!r}")


def has_right(device: Device, right: Right) -> bool:
    """Whether a device may do what needs a right."""
    return RIGHTS.index(device.right) >= RIGHTS.index(right)
