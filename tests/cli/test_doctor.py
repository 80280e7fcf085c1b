"""`holdfast doctor`: a punch list that is true, with a fix for each point."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tests.cli.bare_engine import BareEngine
from tests.cli.commands import Run, run
from tests.cli.terminals import terminal

from holdfast.cli import exit_codes
from holdfast.cli.doctor.home import TOO_LITTLE_BYTES
from holdfast.cli.doctor.versions import check_versions
from holdfast.guests import Engines
from holdfast.store import Home

__all__ = ["run"]


def findings(run: Run) -> dict[str, dict[str, Any]]:
    found = json.loads(run("doctor", "--json").out)
    return {
        each["part"] + (f":{each['told'].split(':')[0]}" if each["part"] == "kernel" else ""): each
        for each in found
    }


def test_an_empty_machine_has_everything_but_a_model(run: Run, tmp_path: Path) -> None:
    done = run("doctor")
    assert done.code == 1
    assert "1 to mend: model" in done.out
    assert "fix: set a key, or holdfast model install" in done.out
    assert not (tmp_path / "holdfast").exists(), "looking makes nothing"


def test_an_extra_is_installed_by_what_it_stands_on_and_never_by_our_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = metadata.version

    def version(name: str) -> str:
        if name == "wasmtime":
            raise metadata.PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr(metadata, "version", version)
    [wasi] = [finding for finding in check_versions() if "'wasi'" in finding.told]
    install = f"{sys.executable} -m pip install "
    assert wasi.fix.startswith(install)
    assert {each.partition("==")[0] for each in wasi.fix.removeprefix(install).split()} == {
        "wasmtime",
        "componentize-py",
    }


def test_a_model_with_a_key_is_all_that_was_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "nothing-of-worth")
    done = run("doctor")
    assert done.code == 0, done.out
    assert "nothing is in the way" in done.out
    assert "nothing-of-worth" not in done.out


def test_every_point_is_looked_at_and_every_bad_one_has_a_fix(run: Run) -> None:
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
        "mcp",
    } <= found.keys()
    assert all(each["fix"] for each in found.values() if each["state"] != "ok")
    assert "escape attempts refused" in found["sandbox python"]["told"]


def test_a_home_that_others_can_look_into_is_bad(run: Run, tmp_path: Path) -> None:
    Home(tmp_path / "holdfast").prepare()
    (tmp_path / "holdfast").chmod(0o755)
    home = findings(run)["home"]
    assert home["state"] == "bad"
    assert home["fix"] == f"chmod 700 {tmp_path}/holdfast"


def test_a_broken_configuration_or_policy_is_bad(run: Run, tmp_path: Path) -> None:
    run("init")
    (tmp_path / "holdfast" / "policies" / "mine.yaml").write_text("policy: mine\nrules: 3\n")
    assert "mine.yaml:2" in findings(run)["policy"]["told"]
    (tmp_path / "holdfast" / "config.toml").write_text("polcy = 1\n")
    assert "config.toml:1:9" in findings(run)["config"]["told"]


def test_a_full_disk_is_bad(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        free = TOO_LITTLE_BYTES - 1

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full())
    assert findings(run)["disk"]["state"] == "bad"


def test_a_sandbox_without_walls_is_found_out_by_what_escapes_from_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = BareEngine({"PATH": "/usr/bin", "SECRET": "of worth"})
    monkeypatch.setattr(Engines, "engine", lambda *_, **__: bare)
    found = findings(run)["sandbox python"]
    assert found["state"] == "bad"
    escaped = Path("/etc/passwd").read_text()[:10]
    assert f"FAILED: reads nothing outside, seen: ok: {escaped}" in found["told"]
    assert "FAILED: sees no environment" in found["told"]
    assert found["fix"] == "do not use --sandbox python, and report this"


def test_a_server_that_does_not_start_is_bad_and_one_that_does_is_not(run: Run, tmp_path: Path) -> None:
    Home(tmp_path / "holdfast").prepare()
    servers = {
        "gone": {"command": "/nowhere/at-all"},
        "clock": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
    }
    (tmp_path / "holdfast" / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
    found = findings(run)
    assert found["mcp gone"]["state"] == "bad"
    assert found["mcp clock"]["state"] != "bad", found["mcp clock"]


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_in_place_of_the_home_is_one_finding_and_the_rest_is_looked_at(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    whole = findings(run).keys()
    (tmp_path / "holdfast").write_text("not a folder")
    monkeypatch.setenv("HOLDFAST_HOME", f"{tmp_path}/holdfast{below}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "nothing-of-worth")
    found = findings(run)
    assert found.keys() == whole
    assert [part for part, each in found.items() if each["state"] == "bad"] == ["home"]
    assert found["home"]["told"] == f"{tmp_path}/holdfast is no folder"
    assert found["home"]["fix"] == "move it away, or set HOLDFAST_HOME to a folder of your own"


def test_what_cannot_be_looked_at_is_a_finding_and_the_rest_is_looked_at(run: Run, tmp_path: Path) -> None:
    Home(tmp_path / "holdfast").prepare()
    (tmp_path / "holdfast" / "key").write_bytes(b"too short")
    (tmp_path / "holdfast" / "mcp-servers.json").mkdir()
    found = findings(run)
    assert "9 bytes instead of 32" in found["sandbox"]["told"]
    assert "backup" in found["sandbox"]["fix"]
    assert found["mcp"]["state"] == "bad"


def test_on_a_narrow_terminal_the_words_stand_below_the_part(tmp_path: Path) -> None:
    with terminal("doctor", home=tmp_path, COLUMNS="50", TMPDIR=str(tmp_path), NO_COLOR="1") as typist:
        assert typist.end() == exit_codes.ERROR, "there is no model"
    lines = typist.seen.replace("\r", "").splitlines()
    place = lines.index("ok    sandbox lisp")
    assert lines[place + 1].startswith("      version 1: ")
    assert [line for line in lines if len(line) > 50 and "\x1b" not in line] == []
