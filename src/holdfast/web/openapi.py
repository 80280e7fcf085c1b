"""The description of the API, made from the route table and the types of its bodies."""

import re
from typing import Any

import msgspec

from holdfast.core import Json
from holdfast.web.application import ROUTES, EnterBody, Entered, ErrorBody
from holdfast.web.guard import ENTER

TITLE = "Holdfast"


def openapi() -> dict[str, Json]:
    """The description as an OpenAPI 3.1 document."""
    types = [kind for route in ROUTES for kind in (route.takes, route.gives) if kind is not None]
    shown, components = msgspec.json.schema_components(
        [*types, EnterBody, Entered, ErrorBody], ref_template="#/components/schemas/{name}"
    )
    # Types cannot be keys: a generic one such as list[Device] is a new object each time.
    schemas = dict(zip(map(repr, [*types, EnterBody, Entered, ErrorBody]), shown, strict=True))
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = {
            "summary": route.summary,
            "description": f"Needs the right `{route.right}`.",
            "parameters": [*_parameters(route.path), *_query(route.query)],
            **(_body(schemas[repr(route.takes)]) if route.takes is not None else {}),
            "responses": _responses(schemas[repr(route.gives)], is_text=route.gives is str),
            "security": [{"token": []}],
        }
    paths[ENTER] = {
        "post": {
            "summary": "Exchange a one-time code for a token",
            **_body(schemas[repr(EnterBody)]),
            "responses": _responses(schemas[repr(Entered)]),
        }
    }
    paths["/api/stream"] = {
        "get": {
            "summary": "Events of all sessions as server-sent events; Last-Event-ID is the row to start behind",
            "responses": {"200": {"description": "frames", "content": {"text/event-stream": {}}}},
            "security": [{"token": []}],
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": "1"},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query(names: tuple[str, ...]) -> list[Json]:
    return [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]


def _body(schema: dict[str, Any]) -> dict[str, Json]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _responses(schema: dict[str, Any], *, is_text: bool = False) -> dict[str, Json]:
    kind = "text/csv" if is_text else "application/json"
    error: Json = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {
        "200": {"description": "done", "content": {kind: {"schema": schema}}},
        "4XX": {"description": "refused, with the reason", "content": error},
    }
