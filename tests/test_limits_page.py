"""Every line of docs/security/limits.md has a bound, a default and a named test, and the host stays small in its cases."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bounds_main import CASES

from holdfast.app import Runtime
from holdfast.core import Error, Ok
from holdfast.core.errors import ToolFailed
from holdfast.gate import OutputFilter
from holdfast.guests import GuestLimits
from holdfast.policy import FixedPolicy
from holdfast.session import Settings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security" / "limits.md"
MAX_HOST_MB = 300
SHORT = ("nested_call", "model_line", "stray_files", "roster", "policy_file")
"""The cases that take a second or two."""


def test_every_line_has_a_bound_a_default_and_a_test_that_exists() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 30
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 4, row
        assert all(cells), row
        named = re.findall(r"`(tests/[^`]+)`", cells[3])
        assert named, row
        for test in named:
            file, _, name = test.partition("::")
            assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.M), test


def peak_mb(case: str, folder: Path) -> int:
    """The peak memory of a case, in MB, in its own process."""
    folder.chmod(0o700)
    words = [sys.executable, "-W", "ignore", "-m", "tests.bounds_main", case, str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.promise("P10")
@pytest.mark.parametrize("case", SHORT)
def test_a_case_of_the_page_stays_small(case: str, tmp_path: Path) -> None:
    assert peak_mb(case, tmp_path) < MAX_HOST_MB


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", sorted(set(CASES) - set(SHORT)))
def test_every_other_case_of_the_page_stays_small(case: str, tmp_path: Path) -> None:
    assert peak_mb(case, tmp_path) < MAX_HOST_MB


async def test_arguments_that_are_too_large_are_refused(tmp_path: Path) -> None:
    settings = Settings(code=GuestLimits(value_bytes=1000))
    runtime = await Runtime.start(home=tmp_path / "home", settings=settings, servers=())
    try:
        session = await runtime.create(policy=FixedPolicy(default="allow"), needs_model=False)
        for code in ("world.write(path='a', content='x' * 1001)", "open('a', 'w').write('x' * 1001)"):
            outcome = await session.execute(code)
            assert isinstance(outcome, Error)
            assert "code.value_bytes" in outcome.message
        assert isinstance(await session.execute("world.write(path='a', content='x' * 900)"), Ok)
    finally:
        await runtime.close()


def test_a_result_that_is_too_large_is_refused() -> None:
    with pytest.raises(ToolFailed, match="may have at most 1,000"):
        OutputFilter(max_result_bytes=1000).filter_result("x" * 1001)


def test_a_long_error_is_shortened() -> None:
    shown = OutputFilter().filter_error("x" * 200_000)
    assert len(shown) < 101_000
    assert "bytes omitted" in shown
