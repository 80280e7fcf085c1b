"""Inputs of the command line that are too deep, too long or not text end in a clear error."""

import io
import json
import os
from pathlib import Path

import pytest
from tests.cli.commands import Run, run

from holdfast.store import Home

__all__ = ["run"]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [300, 20_000, 200_000])
def test_f50_a_deeply_nested_call_is_a_clear_error(
    run: Run, opening: str, depth: int, tmp_path: Path
) -> None:
    closing = "]" if opening == "[" else "}"
    nested = opening * depth + "1" + closing * depth
    text = '{"operation": "world.read", "arguments": {"path": ' + nested + "}}"
    for action in ("check", "explain"):
        done = run("policy", action, "--policy", "project", "--call", text)
        assert done.code == 2, done.err
        assert "levels deep" in done.err
        assert "internal error" not in done.err


def test_an_error_that_repeats_a_long_input_is_cut(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"policy: x\nrules:\n- name: a\n  allow: '{'x ' * 500_000}'\n")
    call = '{"operation": "world.read", "arguments": {"path": "a"}}'
    done = run("policy", "check", "--policy", str(tmp_path / "policy.yaml"), "--call", call)
    assert done.code == 2
    assert 20_000 < len(done.err) < 21_000
    assert "(invalid-policy)" in done.err


@pytest.mark.parametrize("lang", ["python", "lisp"])
def test_f50_a_script_that_is_not_utf_8_is_a_clear_error(run: Run, tmp_path: Path, lang: str) -> None:
    (tmp_path / "script").write_bytes(b"print('caf\xe9')")
    done = run("exec", "--lang", lang, "script")
    assert (done.code, "is not UTF-8 text" in done.err) == (2, True), done.err


def test_f50_standard_input_that_is_not_utf_8_is_a_clear_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"print('caf\xe9')"), encoding="utf-8"))
    done = run("exec", "-")
    assert (done.code, "is not UTF-8 text" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    "limits",
    [
        "tokens=1.5",
        "calls=1.5",
        "tokens=1e308",
        "steps=1e400",
        "tokens=nan",
        "tokens=10,tokens=99999999",
        "bytes=0.5",
    ],
)
def test_f50_a_budget_that_is_not_a_sensible_number_names_it(run: Run, limits: str) -> None:
    done = run("--budget", limits, "--model", "scripted:none.json", "hi")
    assert done.code == 2
    assert limits.split("=")[0] in done.err
    assert "internal error" not in done.err


@pytest.mark.parametrize(
    "text", ["a\x85b", "a\x9b31mb", "a\u202eb", "a\u2066b", "a\u200bb", "\U000e0041", "ü"]
)
def test_f51_json_output_escapes_what_a_terminal_obeys(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "ask.yaml").write_text("x")
    name = json.dumps({"operation": "world.read", "arguments": {"path": text}})
    done = run("policy", "explain", "--policy", "project", "--call", name, "--json")
    assert done.out, done.err
    assert not any(
        0x7F <= ord(char) <= 0x9F or 0x2000 <= ord(char) <= 0x206F or ord(char) > 0xE0000 for char in done.out
    )
    json.loads(done.out)


SETTINGS = {
    "config.toml": ("config",),
    "mcp-servers.json": ("mcp", "list"),
    "teams.yaml": ("teams", "check"),
    "trusted-folders.json": ("exec", "-w", "shop", "program.py"),
}
NESTED = {"config.toml": "a = ", "teams.yaml": "teams: "}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_settings_file_that_is_a_pipe_too_long_or_too_deep_is_a_clear_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    Home(tmp_path / "holdfast").prepare()
    (tmp_path / "shop").mkdir()
    (tmp_path / "program.py").write_text("1 + 1\n")
    path = tmp_path / "holdfast" / name
    monkeypatch.setattr("holdfast.store.files.private_files.MAX_SETTINGS_BYTES", 200_000)
    for content in (None, " " * 200_001, NESTED.get(name, "") + "[" * 100_000):
        if content is None:
            os.mkfifo(path)
        else:
            path.write_text(content)
        done = run(*SETTINGS[name])
        assert done.code != 0, done
        assert "invalid-config" in done.err, done.err[-500:]
        assert "Traceback" not in done.err
        path.unlink()


def test_the_policy_of_a_project_can_not_be_a_link_to_a_file_elsewhere(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop" / ".holdfast").mkdir(parents=True)
    (tmp_path / "private.txt").write_text("hidden-words: 1\n")
    (tmp_path / "shop" / ".holdfast" / "policy.yaml").symlink_to(tmp_path / "private.txt")
    (tmp_path / "program.py").write_text("1 + 1\n")
    done = run("exec", "--trust", "-w", "shop", "program.py")
    assert done.code == 2
    assert "leads outside the project" in done.err
    assert "hidden-words" not in done.err
