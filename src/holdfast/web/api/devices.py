"""Routes of devices: which browsers may use this server, and codes for new ones."""

from holdfast.core import PERSON, Value
from holdfast.core.errors import InvalidInput
from holdfast.store import Right
from holdfast.web.api.sessions import Nothing
from holdfast.web.context import WebRequest
from holdfast.web.devices import Device
from holdfast.web.qr_code import QrCode, qr_code
from holdfast.web.route import get, post


class CodeBody(Value, forbid_unknown_fields=True):
    """What the new device may do."""

    right: Right = "answer"


class EntryLink(Value, omit_defaults=False):
    """A link that lets one more browser in, once, within minutes."""

    url: str
    qr: QrCode | None
    """The link for the camera of a phone; None if only this machine reaches the server."""


class DeviceList(Value, omit_defaults=False):
    """The devices, and which one asks."""

    devices: list[Device]
    own: str


async def list_devices(request: WebRequest) -> DeviceList:
    """The browsers that entered since this server started."""
    return DeviceList(devices=request.context.devices.all(), own=request.device.id)


async def new_link(request: WebRequest) -> EntryLink:
    """A link for one more device."""
    body = request.given(CodeBody)
    if request.device.principal != PERSON:
        # A browser would stay when the key is revoked.
        raise InvalidInput(
            "an API key lets no browser in", hint="create another key: holdfast store keys URL --add NAME"
        )
    code = request.context.devices.new_code(body.right)
    url = f"{request.context.origin}/#enter={code}"
    return EntryLink(url=url, qr=qr_code(url) if url.startswith("https://") else None)


async def end_device(request: WebRequest) -> DeviceList:
    """End a device at once."""
    request.context.devices.end(request.path["device"])
    return await list_devices(request)


ROUTES = (
    get("/api/devices", list_devices, DeviceList, "The browsers that entered since the server started"),
    post("/api/devices/link", new_link, CodeBody, EntryLink, "A link that lets one more browser in, once"),
    post("/api/devices/{device}/end", end_device, Nothing, DeviceList, "End a device at once"),
)
