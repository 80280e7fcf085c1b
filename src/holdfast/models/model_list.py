"""The list of models that a provider offers, from its API. What it sends is checked: it is text from the network."""

import httpx2
import msgspec

from holdfast.core import Value
from holdfast.core.errors import ModelRefused, ModelUnavailable
from holdfast.models.errors import ReplyTooLong

MAX_MODELS = 1000
_MAX_BYTES = 4_000_000
_MAX_NAME_LENGTH = 200
_GENERATES = "generateContent"


class _Entry(Value):
    id: str


class _List(Value):
    data: tuple[_Entry, ...]


class _GoogleEntry(Value, rename="camel"):
    name: str
    supported_generation_methods: tuple[str, ...] = (_GENERATES,)


class _GoogleList(Value):
    models: tuple[_GoogleEntry, ...]


async def read_model_list(
    client: httpx2.AsyncClient, provider: str, address: str, key: str
) -> tuple[str, ...]:
    """The names of a provider's models, sorted. Raises ModelUnavailable and ModelRefused."""
    path, headers = _request(provider, key)
    try:
        async with client.stream("GET", f"{address}{path}", headers=headers) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise ReplyTooLong
        if response.status_code in (401, 403):
            raise ModelRefused(f"{provider} rejects the key", hint="holdfast model check")
        if response.status_code != 200:
            raise ModelUnavailable(f"{provider} sends no list of models: HTTP {response.status_code}")
        names = _names(provider, bytes(body))
    except (httpx2.HTTPError, ReplyTooLong, ValueError, RecursionError) as error:
        raise ModelUnavailable(f"{provider} sends no list of models: {type(error).__name__}") from error
    return tuple(sorted({name for name in names if 0 < len(name) <= _MAX_NAME_LENGTH}))[:MAX_MODELS]


def _request(provider: str, key: str) -> tuple[str, dict[str, str]]:
    match provider:
        case "anthropic":
            return f"/v1/models?limit={MAX_MODELS}", {"x-api-key": key, "anthropic-version": "2023-06-01"}
        case "google":
            return f"/v1beta/models?pageSize={MAX_MODELS}", {"x-goog-api-key": key}
        case _:
            return "/models", {"authorization": f"Bearer {key}"}


def _names(provider: str, body: bytes) -> list[str]:
    if provider != "google":
        return [each.id for each in msgspec.json.decode(body, type=_List).data]
    listed = msgspec.json.decode(body, type=_GoogleList).models
    return [
        each.name.removeprefix("models/")
        for each in listed
        if _GENERATES in each.supported_generation_methods
    ]
