"""Translation of the MCP library's exceptions into ours.

A message names the fault. It never repeats what the server sent, except the text of a JSON-RPC error.
"""

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from holdfast.core import escape_invisible
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.mcp.config.servers import ServerSpec

_MAX_DETAIL_CHARACTERS = 500
_MAX_MESSAGE_CHARACTERS = 2000
_MAX_START_CHARACTERS = 1000


def is_connection_closed(error: BaseException) -> bool:
    """Whether the error means that the server is gone."""
    error = _innermost(error)
    return isinstance(error, MCPError) and error.code == mcp_types.CONNECTION_CLOSED


def call_error(error: BaseException, spec: ServerSpec) -> HoldfastError:
    """Why a running server did not answer a request."""
    match error := _innermost(error):
        case MCPError(code=mcp_types.REQUEST_TIMEOUT):
            return ToolTimeout(
                f"server {spec.name!r} did not answer within {spec.call_seconds:g} s",
                hint=f"raise 'callSeconds' of {spec.name!r} in mcp-servers.json",
            )
        case MCPError(code=mcp_types.PARSE_ERROR):
            # Only the first line: the library appends what the server sent.
            return _protocol_error(spec, ValueError(error.message.partition("\n")[0]))
        case MCPError():
            message = error.message[:_MAX_MESSAGE_CHARACTERS]
            return ToolFailed(f"server {spec.name!r} returned an error: {message}")
        case HoldfastError():
            return error
        case _:
            return _protocol_error(spec, error)


def start_error(error: BaseException, spec: ServerSpec, ending: str) -> HoldfastError:
    """Why a server did not start. `ending` says how its program ended, if it did."""
    error = _innermost(error)
    if isinstance(error, HoldfastError):
        return error
    if ending and isinstance(error, MCPError | anyio.ClosedResourceError):
        return ToolFailed(f"server {spec.name!r} {ending[:_MAX_START_CHARACTERS]}")
    if isinstance(error, ValueError):
        return _protocol_error(spec, error)
    detail = (str(error) or type(error).__name__)[:_MAX_START_CHARACTERS]
    return ToolFailed(f"server {spec.name!r} did not start: {detail}")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _protocol_error(spec: ServerSpec, error: BaseException) -> ToolFailed:
    """The error for a response that violates the protocol: where and how, but not what the server sent."""
    detail = str(error)
    if isinstance(error, ValidationError):
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        detail = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in wrong[:3])
    detail = escape_invisible(detail)[:_MAX_DETAIL_CHARACTERS]
    return ToolFailed(f"server {spec.name!r} broke the protocol: {detail}")
