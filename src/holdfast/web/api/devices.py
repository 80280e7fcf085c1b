"""Routes of devices: which browsers may use this server, and codes for new ones."""

from holdfast.core import Value
from holdfast.web.api.sessions import Nothing
from holdfast.web.context import WebRequest
from holdfast.web.devices import Device, Right
from holdfast.web.route import Route


class CodeBody(Value, forbid_unknown_fields=True):
    """What the new device may do."""

    right: Right = "answer"


class EntryLink(Value):
    """A link that lets one more browser in, once, within minutes."""

    url: str


class DeviceList(Value, omit_defaults=False):
    """The devices, and which one asks."""

    devices: list[Device]
    own: str


async def list_devices(request: WebRequest) -> DeviceList:
    """The browsers that entered since this server started."""
    return DeviceList(devices=request.context.devices.all(), own=request.device.id)


async def new_link(request: WebRequest) -> EntryLink:
    """A link for one more device."""
    body = request.body
    assert isinstance(body, CodeBody)
    code = request.context.devices.new_code(body.right)
    return EntryLink(url=f"{request.context.origin}/#enter={code}")


async def end_device(request: WebRequest) -> DeviceList:
    """End a device at once."""
    request.context.devices.end(request.path["device"])
    return await list_devices(request)


ROUTES = (
    Route(
        method="GET",
        path="/api/devices",
        right="look",
        summary="The browsers that entered since the server started",
        answer=list_devices,
        gives=DeviceList,
    ),
    Route(
        method="POST",
        path="/api/devices/link",
        right="operate",
        summary="A link that lets one more browser in, once",
        answer=new_link,
        takes=CodeBody,
        gives=EntryLink,
    ),
    Route(
        method="POST",
        path="/api/devices/{device}/end",
        right="operate",
        summary="End a device at once",
        answer=end_device,
        takes=Nothing,
        gives=DeviceList,
    ),
)
