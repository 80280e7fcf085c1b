"""`holdfast doctor`: every problem is found, and has a fix."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run, run
from tests.cli.terminals import terminal
from tests.cli.unconfined_engine import UnconfinedEngine

from holdfast.cli import exit_codes
from holdfast.commands import SandboxStatus
from holdfast.guests import Engines
from holdfast.services import CheckResult
from holdfast.services.doctor.home import CRITICAL_DISK_BYTES, check_home
from holdfast.services.doctor.sandboxes import describe_command_sandbox
from holdfast.services.doctor.versions import check_versions
from holdfast.store import Home

pytestmark = pytest.mark.usefixtures("own_finding")

__all__ = ["run"]


def findings(run: Run) -> dict[str, dict[str, Any]]:
    found = json.loads(run("doctor", "--json").out)
    return {
        each["part"] + (f":{each['detail'].split(':')[0]}" if each["part"] == "kernel" else ""): each
        for each in found
    }


def home_results(tmp_path: Path) -> dict[str, CheckResult]:
    """The results of the checks of the data directory alone."""
    return {result.part: result for result in check_home(Home(tmp_path / "holdfast"))}


def test_a_fresh_machine_lacks_only_a_model(run: Run, tmp_path: Path) -> None:
    done = run("doctor")
    assert done.code == 1
    assert "1 problem: model" in done.out
    assert "fix: set a key, or start Ollama or llama-server" in done.out
    assert not (tmp_path / "holdfast").exists(), "looking makes nothing"


def test_the_fix_for_an_extra_names_its_requirements_not_our_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = metadata.version

    def version(name: str) -> str:
        if name == "wasmtime":
            raise metadata.PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr(metadata, "version", version)
    [wasi] = [result for result in check_versions() if "'wasi'" in result.detail]
    install = f"{sys.executable} -m pip install "
    assert wasi.fix.startswith(install)
    assert {each.partition("==")[0] for each in wasi.fix.removeprefix(install).split()} == {
        "wasmtime",
        "componentize-py",
    }


def test_a_provider_key_fixes_a_fresh_machine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "nothing-of-worth")
    done = run("doctor")
    assert done.code == 0, done.out
    assert "no problems" in done.out
    assert "nothing-of-worth" not in done.out


def test_every_check_runs_and_every_problem_has_a_fix(run: Run) -> None:
    found = findings(run)
    assert {
        "home",
        "disk",
        "config",
        "policy",
        "versions",
        "libraries",
        "kernel:openat2",
        "kernel:landlock",
        "kernel:seccomp",
        "kernel:inotify",
        "keys",
        "model",
        "sandbox python",
        "sandbox wasi",
        "sandbox lisp",
        "commands",
        "mcp",
    } <= found.keys()
    assert all(each["fix"] for each in found.values() if each["state"] != "ok")
    assert "escape attempts refused" in found["sandbox python"]["detail"]


def test_a_data_directory_that_others_can_read_is_a_problem(tmp_path: Path) -> None:
    Home(tmp_path / "holdfast").prepare()
    (tmp_path / "holdfast").chmod(0o755)
    home = home_results(tmp_path)["home"]
    assert home.state == "bad"
    assert home.fix == f"chmod 700 {tmp_path}/holdfast"


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o602])
@pytest.mark.parametrize("name", ["export-key", "key"])
def test_a_key_that_others_can_read_is_a_problem(tmp_path: Path, name: str, mode: int) -> None:
    home = Home(tmp_path / "holdfast")
    home.key(), home.export_key()
    assert home_results(tmp_path)["home"].state == "ok"
    (home.root / name).chmod(mode)
    found = home_results(tmp_path)["home"]
    assert (found.state, found.fix) == ("bad", f"chmod 600 {home.root / name}")
    assert "other users can read" in found.detail


def test_an_invalid_configuration_or_policy_is_a_problem(run: Run, tmp_path: Path) -> None:
    run("init")
    (tmp_path / "holdfast" / "policies" / "mine.yaml").write_text("policy: mine\nrules: 3\n")
    assert "mine.yaml:2" in home_results(tmp_path)["policy"].detail
    (tmp_path / "holdfast" / "config.toml").write_text("polcy = 1\n")
    assert "config.toml:1:9" in home_results(tmp_path)["config"].detail


def test_a_full_disk_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        free = CRITICAL_DISK_BYTES - 1

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full())
    assert home_results(tmp_path)["disk"].state == "bad"


def test_an_unconfined_sandbox_fails_its_escape_tests(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = UnconfinedEngine({"PATH": "/usr/bin", "SECRET": "of worth"})
    monkeypatch.setattr(Engines, "engine", lambda *_, **__: bare)
    # One is enough: each uses a core until the time limit of the test that loops without end.
    monkeypatch.setattr("holdfast.services.doctor.sandboxes._SANDBOXES", ("python",))
    found = findings(run)["sandbox python"]
    assert found["state"] == "bad"
    escaped = Path("/etc/passwd").read_text()[:10]
    assert f"FAILED: reads nothing outside, seen: ok: {escaped}" in found["detail"]
    assert "FAILED: sees no environment" in found["detail"]
    assert found["fix"] == "do not use --sandbox python, and report this"


def test_a_server_that_does_not_start_is_a_problem(run: Run, tmp_path: Path) -> None:
    Home(tmp_path / "holdfast").prepare()
    servers = {
        "gone": {"command": "/nowhere/at-all"},
        "clock": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
    }
    (tmp_path / "holdfast" / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
    found = findings(run)
    assert found["mcp gone"]["state"] == "bad"
    assert found["mcp clock"]["state"] != "bad", found["mcp clock"]


def test_a_file_in_place_of_the_data_directory_is_one_problem_and_the_other_checks_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = findings(run).keys()
    (tmp_path / "holdfast").write_text("not a folder")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "nothing-of-worth")
    for below in ("", "/deeper"):
        monkeypatch.setenv("HOLDFAST_HOME", f"{tmp_path}/holdfast{below}")
        found = findings(run)
        assert found.keys() == whole
        assert [part for part, each in found.items() if each["state"] == "bad"] == ["home"]
        assert found["home"]["detail"] == f"{tmp_path}/holdfast is not a folder"
        assert found["home"]["fix"] == "move it away, or set HOLDFAST_HOME to a folder you own"


def test_a_check_that_cannot_run_is_a_problem_and_the_other_checks_run(run: Run, tmp_path: Path) -> None:
    Home(tmp_path / "holdfast").prepare()
    (tmp_path / "holdfast" / "key").write_bytes(b"too short")
    (tmp_path / "holdfast" / "mcp-servers.json").mkdir()
    found = findings(run)
    assert "9 bytes instead of 32" in found["sandbox"]["detail"]
    assert "backup" in found["sandbox"]["fix"]
    assert found["mcp"]["state"] == "bad"


def test_on_a_narrow_terminal_details_go_below_the_name(tmp_path: Path) -> None:
    with terminal("doctor", home=tmp_path, COLUMNS="50", TMPDIR=str(tmp_path), NO_COLOR="1") as user:
        assert user.end() == exit_codes.ERROR, "there is no model"
    lines = user.seen.replace("\r", "").splitlines()
    place = lines.index("ok    sandbox lisp")
    assert lines[place + 1].startswith("      version 1: ")
    assert [line for line in lines if len(line) > 50 and "\x1b" not in line] == []


def test_a_large_home_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    tmp_path.chmod(0o700)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "large").write_bytes(bytes(100_000))
    assert not any("uses more than" in each.detail for each in check_home(home))
    monkeypatch.setattr("holdfast.services.doctor.home.LARGE_HOME_BYTES", 90_000)
    [found] = [each for each in check_home(home) if "uses more than" in each.detail]
    assert found.state == "note"
    assert "holdfast prune" in found.fix


def test_a_weaker_command_sandbox_is_named_with_both_ways_out() -> None:
    status = SandboxStatus(tier="copy", missing=("user namespaces",), hint="sudo sysctl x=1")
    found = describe_command_sandbox(status)
    assert (found.state, found.fix) == ("note", "sudo sysctl x=1")
    assert "only the copy sandbox" in found.detail
    assert "enabled = true under [shell]" in found.detail
    enabled = describe_command_sandbox(status, is_enabled=True)
    assert "only the copy sandbox" in enabled.detail
    assert "as your policy decides" in enabled.detail
    assert "only with" not in enabled.detail


def test_commands_that_are_switched_off_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "holdfast").mkdir(mode=0o700)
    (tmp_path / "holdfast" / "config.toml").write_text("[shell]\nenabled = false\n")
    found = findings(run)["commands"]
    assert found["state"] == "note"
    assert "switched off" in found["detail"]
    assert found["fix"] == "holdfast config set shell.enabled auto"
