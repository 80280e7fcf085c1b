"""The self-test passes for a working engine, and reports what happened for a broken one."""

from pathlib import Path

import pytest
from tests.guests.engines import ENGINES, KEY

from holdfast.guests import ScriptedEngine, self_test
from holdfast.guests.contract import Capabilities

# The first test of the WASI engine on a machine builds its component.
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", ["python", "lisp", "wasi"])
async def test_each_engine_passes_its_self_test(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name].make(tmp_path)
    checks = await self_test(engine)
    await engine.close()
    assert len(checks) >= 6
    assert [check for check in checks if not check.is_passed] == []


async def test_a_broken_engine_fails_its_self_test() -> None:
    class Mistaken(ScriptedEngine):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(
                engine="mistaken", version="1", language="python", has_snapshot=True, judges_files=True
            )

    checks = await self_test(Mistaken(key=KEY))
    assert checks
    assert not [check for check in checks if check.is_passed]
    assert checks[0].seen.startswith("refused: ")
