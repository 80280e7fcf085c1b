"""Failures: what the protocol library raised, in our words. Of what a server sent, only what names the fault is told."""

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from holdfast.core import escape_invisible
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.mcp.config.servers import ServerSpec

_MAX_TOLD = 500
_MAX_SAID = 2000


def is_ending(error: BaseException) -> bool:
    """Whether it says that the server is gone."""
    error = _innermost(error)
    return isinstance(error, MCPError) and error.code == mcp_types.CONNECTION_CLOSED


def explained(error: BaseException, spec: ServerSpec) -> HoldfastError:
    """Why a server that runs did not do what it was asked."""
    match error := _innermost(error):
        case MCPError(code=mcp_types.REQUEST_TIMEOUT):
            return ToolTimeout(
                f"server {spec.name!r} did not answer within {spec.call_seconds:g} s",
                hint="'callSeconds' of the entry sets the limit",
            )
        case MCPError(code=mcp_types.PARSE_ERROR):
            # Only its first line: the library goes on with what was sent.
            return _broken(spec, ValueError(error.message.partition("\n")[0]))
        case MCPError():
            return ToolFailed(f"server {spec.name!r} answered with an error: {error.message[:_MAX_SAID]}")
        case HoldfastError():
            return error
        case _:
            return _broken(spec, error)


def start_failure(error: BaseException, spec: ServerSpec, ending: str) -> HoldfastError:
    """Why a server did not come up; `ending` is how its program ended, where it did."""
    error = _innermost(error)
    if isinstance(error, HoldfastError):
        return error
    if ending and isinstance(error, MCPError | anyio.ClosedResourceError):
        return ToolFailed(f"server {spec.name!r} {ending[:1000]}")
    if isinstance(error, ValueError):
        return _broken(spec, error)
    return ToolFailed(f"server {spec.name!r} {(str(error) or type(error).__name__)[:1000]}")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _broken(spec: ServerSpec, error: BaseException) -> ToolFailed:
    """A server that answered what the protocol does not allow: where, and what was wrong, but not what it sent."""
    how = str(error)
    if isinstance(error, ValidationError):
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        how = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in wrong[:3])
    return ToolFailed(f"server {spec.name!r} broke the protocol: {escape_invisible(how)[:_MAX_TOLD]}")
