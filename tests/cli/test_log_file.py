"""The log file: private, redacted, limited in size, and never on the screen."""

import logging
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.cli.terminals import at_terminal

import holdfast.cli.commands.verify as verify
from holdfast.cli.log_file import MAX_BYTES, MAX_RECORD_BYTES, log_to_file
from holdfast.services.doctor.home import check_home
from holdfast.store import Home

__all__ = ["run"]

LOG = "holdfast/logs/holdfast.log"


def test_an_internal_error_is_one_line_and_its_traceback_is_in_the_log(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(arguments: object) -> int:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(verify, "run", broken)
    done = run("verify")
    assert (done.code, done.out) == (1, "")
    assert "internal error: ZeroDivisionError('on purpose') (internal)" in done.err
    assert "Traceback" not in done.err
    assert f"the traceback is in {tmp_path}/{LOG}" in done.err.replace("\n", " ")
    assert "Traceback (most recent call last):" in (tmp_path / LOG).read_text()
    assert run("explain", "internal").code == 0
    [result] = [result for result in check_home(Home(tmp_path / "holdfast")) if result.part == "log"]
    assert result.detail == f"there are warnings or errors in {tmp_path}/{LOG}"


def test_library_warnings_go_to_the_log_not_to_the_terminal(tmp_path: Path) -> None:
    words = "import logging, holdfast.cli.commands.verify as verify\n"
    words += "async def run(arguments): logging.getLogger('library').warning('hm'); return 0\n"
    words += "verify.run = run\nfrom holdfast.cli import main\nmain(['verify'])"
    with at_terminal([sys.executable, "-c", words], home=tmp_path) as user:
        assert user.end() == 0
    assert "hm" not in user.seen
    assert (tmp_path / LOG).read_text().endswith(" WARNING library: hm\n")


def test_no_log_is_created_without_records(run: Run, tmp_path: Path) -> None:
    assert run("explain", "internal").code == 0
    assert run("sessions").code == 0
    assert not (tmp_path / "holdfast" / "logs").exists()


def test_the_log_is_private_and_redacted(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-worth")
    with log_to_file() as log:
        log.warning("the header was %r", "a-key-of-worth")
    assert "the header was '[redacted]'" in (tmp_path / LOG).read_text()
    assert (tmp_path / LOG).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / LOG).parent.stat().st_mode & 0o777 == 0o700


def test_the_log_redacts_keys_from_configured_variables(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPANY_KEY", "a-key-of-worth")
    home = (tmp_path / LOG).parent.parent
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text('[model_requests]\nkey_variable = "COMPANY_KEY"\n')
    with log_to_file() as log:
        log.warning("the header was %r", "a-key-of-worth")
    assert "the header was '[redacted]'" in (tmp_path / LOG).read_text()


def test_the_log_never_exceeds_its_size_limit(run: Run, tmp_path: Path) -> None:
    with log_to_file() as log:
        log.warning("first")
        for _ in range(3 * MAX_BYTES // MAX_RECORD_BYTES):
            log.warning("x" * 2 * MAX_RECORD_BYTES)
    kept = sorted((tmp_path / LOG).parent.iterdir())
    assert [path.name for path in kept] == ["holdfast.log", "holdfast.log.1"]
    assert all(path.stat().st_size <= MAX_BYTES for path in kept)
    assert "first" not in "".join(path.read_text() for path in kept)


def test_a_log_that_cannot_be_written_fails_no_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "holdfast").write_text("not a folder")
    with log_to_file() as log:
        log.warning("lost")
    assert not [each for each in logging.getLogger().handlers if type(each).__name__ == "LogFileHandler"]
