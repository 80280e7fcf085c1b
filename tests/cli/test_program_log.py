"""The log of the program: private, redacted, bounded, and never in the way of what is on the screen."""

import logging
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.cli.terminals import at_terminal

import holdfast.cli.commands.verify as verify
from holdfast.cli.log_file import MAX_BYTES, MAX_RECORD_BYTES, log_to_file

__all__ = ["run"]

LOG = "holdfast/logs/holdfast.log"


def test_a_fault_of_ours_is_a_line_with_a_way_out_and_its_trace_is_in_the_log(
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
    assert f"there are warnings or errors in {tmp_path}/{LOG}" in run("doctor", "--json").out


def test_what_libraries_say_goes_to_the_log_and_not_to_the_terminal(tmp_path: Path) -> None:
    words = "import logging, holdfast.cli.commands.verify as verify\n"
    words += "async def run(arguments): logging.getLogger('library').warning('hm'); return 0\n"
    words += "verify.run = run\nfrom holdfast.cli import main\nmain(['verify'])"
    with at_terminal([sys.executable, "-c", words], home=tmp_path) as typist:
        assert typist.end() == 0
    assert "hm" not in typist.seen
    assert (tmp_path / LOG).read_text().endswith(" WARNING library: hm\n")


def test_nothing_is_made_where_there_is_nothing_to_say(run: Run, tmp_path: Path) -> None:
    assert run("explain", "internal").code == 0
    assert run("sessions").code == 0
    assert not (tmp_path / "holdfast" / "logs").exists()


def test_it_is_private_whatever_the_umask_and_knows_no_secret(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-worth")
    with log_to_file() as log:
        log.warning("the header was %r", "a-key-of-worth")
    assert "the header was '[redacted]'" in (tmp_path / LOG).read_text()
    assert (tmp_path / LOG).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / LOG).parent.stat().st_mode & 0o777 == 0o700


def test_it_knows_no_key_whose_variable_the_configuration_names(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPANY_KEY", "a-key-of-worth")
    home = (tmp_path / LOG).parent.parent
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text('[asking]\nkey_variable = "COMPANY_KEY"\n')
    with log_to_file() as log:
        log.warning("the header was %r", "a-key-of-worth")
    assert "the header was '[redacted]'" in (tmp_path / LOG).read_text()


def test_it_never_grows_past_its_bound(run: Run, tmp_path: Path) -> None:
    with log_to_file() as log:
        log.warning("first")
        for _ in range(3 * MAX_BYTES // MAX_RECORD_BYTES):
            log.warning("x" * 2 * MAX_RECORD_BYTES)
    kept = sorted((tmp_path / LOG).parent.iterdir())
    assert [path.name for path in kept] == ["holdfast.log", "holdfast.log.1"]
    assert all(path.stat().st_size <= MAX_BYTES for path in kept)
    assert "first" not in "".join(path.read_text() for path in kept)


def test_a_log_that_cannot_be_written_stops_nobody(run: Run, tmp_path: Path) -> None:
    (tmp_path / "holdfast").write_text("not a folder")
    with log_to_file() as log:
        log.warning("lost")
    assert not [each for each in logging.getLogger().handlers if type(each).__name__ == "LogFileHandler"]
