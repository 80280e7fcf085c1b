"""Checks the store that `$HOLDFAST_STORE` names: reached directly, of the right schema, and safe."""

import os

from holdfast.core import pluralize
from holdfast.services.doctor.check_result import CheckResult
from holdfast.store import STORE_VARIABLE, Home, store_status


async def check_store(_: Home) -> list[CheckResult]:
    """Look at the shared store, if there is one, and at what could lose events that it acknowledged. Raises StoreUnavailable."""
    url = os.environ.get(STORE_VARIABLE)
    if not url:
        return []
    found = await store_status(url)
    where = f"PostgreSQL {found.server}, schema {found.schema_found}"
    if found.schema_found != found.schema_needed:
        detail = f"{where}, and this version of Holdfast needs {found.schema_needed}"
        is_older = found.schema_found < found.schema_needed
        fix = (
            f'holdfast store migrate "${STORE_VARIABLE}"' if is_older else "upgrade Holdfast on this machine"
        )
        return [CheckResult(part="store", state="bad", detail=detail, fix=fix)]
    detail = f"{where}, {pluralize(len(found.workers), 'process')} connected"
    risks = [CheckResult(part="store", state="note", detail=f"not safe: {risk}") for risk in found.risks]
    return [CheckResult(part="store", state="ok", detail=detail), *risks]
