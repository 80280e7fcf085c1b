"""The other side of approval by files: another program asks, and a person answers it with our commands."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.core.errors import EscalationUnknown
from holdfast.gate import answer_external, list_external_requests

ID = "0b1c2d3e-0000-4000-8000-00000000abcd"
REQUEST = {
    "escalationId": ID,
    "serverName": "git",
    "toolName": "git_push",
    "arguments": {"remote": "origin"},
    "reason": "pushes need a yes",
    "context": {"Working directory": "/work"},
}

OTHER_PROGRAM = """
import json, os, pathlib, sys, time
folder, request = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
path = folder / f"request-{request['escalationId']}.json"
(folder / "draft").write_text(json.dumps(request, indent=2))
os.replace(folder / "draft", path)
print("asked", flush=True)
response = folder / f"response-{request['escalationId']}.json"
while not response.exists():
    time.sleep(0.01)
answer = json.loads(response.read_text())
path.unlink()
response.unlink()
print(json.dumps(answer), flush=True)
"""


def put(folder: Path, request: object, id: str = ID) -> None:
    (folder / f"request-{id}.json").write_text(json.dumps(request))


@pytest.mark.parametrize(("word", "decision"), [("approve", "approved"), ("deny", "denied")])
def test_a_program_that_knows_only_the_file_format_is_answered(
    tmp_path: Path, word: str, decision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [sys.executable, "-I", "-c", OTHER_PROGRAM, str(tmp_path), json.dumps(REQUEST)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "asked\n"
        assert main(["waiting", "--folder", str(tmp_path)]) == 0
        assert "git.git_push" in capsys.readouterr().out
        assert main([word, "--folder", str(tmp_path)]) == 0
        assert "delivered" in capsys.readouterr().err
        assert json.loads(other.stdout.readline()) == {"decision": decision}, "and nothing else is in it"
    assert other.returncode == 0


def test_invalid_requests_are_not_shown(tmp_path: Path) -> None:
    put(tmp_path, REQUEST)
    put(tmp_path, REQUEST, id="another-name")
    put(tmp_path, {"escalationId": "x"}, id="x")
    (tmp_path / "request-bytes.json").write_bytes(b'{"escalationId": "bytes", "serverName": "\xff"}')
    (tmp_path / "request-half.json").write_text('{"escalationId": "ha')
    (tmp_path / "request-..%2f..json").write_text(json.dumps(REQUEST))
    (tmp_path / "request-link.json").symlink_to(tmp_path / f"request-{ID}.json")
    assert [request.escalation_id for request in list_external_requests(tmp_path)] == [ID]


def test_a_request_that_was_changed_after_it_was_shown_is_not_answered(tmp_path: Path) -> None:
    put(tmp_path, REQUEST)
    [shown] = list_external_requests(tmp_path)
    put(tmp_path, REQUEST | {"arguments": {"remote": "evil"}})
    with pytest.raises(EscalationUnknown, match="changed"):
        answer_external(tmp_path, shown, is_approved=True)
    assert not (tmp_path / f"response-{ID}.json").exists()


def test_invisible_characters_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, REQUEST | {"arguments": {"remote": "a\u202eb"}, "reason": "\x1b[2J"})
    assert main(["waiting", "--folder", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "<U+202E>" in shown
    assert not {"\u202e", "\x1b"} & set(shown)


def test_when_several_wait_one_must_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    put(tmp_path, REQUEST)
    put(tmp_path, REQUEST | {"escalationId": "second"}, id="second")
    assert main(["approve", "--folder", str(tmp_path)]) == 1
    assert "name one" in capsys.readouterr().err
    assert list(tmp_path.glob("response-*")) == []
