"""Importing a file of a stranger: all or nothing, and the file decides nothing about this machine."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.commands import Run, run
from tests.store.sample_events import opened, turn

from holdfast.core import PERSON, Grant, GrantId, Limits, SessionId, digest_bytes
from holdfast.core.events import (
    GENESIS,
    Event,
    GrantGiven,
    Noted,
    RecordedEvent,
    RestorePointMade,
    SessionOpened,
    SessionReconfigured,
    SessionRewound,
    encode_event,
    event_hash,
)
from holdfast.core.projection import ReplayedHistory
from holdfast.session import Status, workspace_of
from holdfast.store.archive.format import RawEvent, pack
from holdfast.store.contract import ArchiveManifest
from holdfast.store.summary import summarize
from holdfast.world import RestoreLimits

__all__ = ["run"]

EVIL = "server:http://203.0.113.5:8080/v1#m"


def forge(
    path: Path,
    *,
    entries: list[dict[str, object]] | None = None,
    contents: tuple[bytes, ...] = (),
    workspace: str = "/etc",
    folder: str = "/etc",
    model: str = EVIL,
    limits: Limits | None = None,
    first: Sequence[Event] = (),
    early: list[dict[str, object]] | None = None,
) -> Path:
    """A consistent archive of two turns; its last restore point has the given entries, and the first one `early`."""
    manifest = json.dumps({"entries": entries or []}).encode()
    before = json.dumps({"entries": early or entries or []}).encode()
    opening = msgspec.structs.replace(
        opened(folder=folder),
        workspace=workspace,
        model=model,
        name="bundle",
        limits=limits or Limits(),
        queue="host:elsewhere",
    )
    point = RestorePointMade(turn=1, manifest=digest_bytes(before))
    second = RestorePointMade(turn=2, manifest=digest_bytes(manifest))
    lines: list[RawEvent] = []
    previous = GENESIS
    for seq, event in enumerate((opening, *first, *turn(1), point, *turn(2), second), start=1):
        body = encode_event(event)
        previous = event_hash(previous, "forged", seq, 5, body)
        lines.append(RawEvent(session=SessionId("forged"), seq=seq, at_ms=5, hash=previous, body=body))
    described = ArchiveManifest(
        session=SessionId("forged"), events=len(lines), last_hash=previous.hex(), exported_ms=0
    )
    with path.open("w+b") as file:
        pack(file, described, lines, [(digest_bytes(each), each) for each in {manifest, before, *contents}])
    return path


def file_entry(path: str, content: bytes = b"x", **more: object) -> dict[str, object]:
    return {
        "path": path,
        "kind": "file",
        "mode": 0o755,
        "size": len(content),
        "fingerprint": digest_bytes(content),
        **more,
    }


def summary_of(run: Run, name: str = "bundle") -> dict[str, object]:
    found: list[dict[str, object]] = json.loads(run("sessions", "--json").out)
    (line,) = [line for line in found if line["name"] == name]
    return line


@pytest.mark.promise("P11")
def test_f44_a_file_chooses_no_model_policy_or_folder(run: Run, tmp_path: Path) -> None:
    done = run("import", str(forge(tmp_path / "f.zip", folder=str(tmp_path))))
    assert done.code == 0, done.err
    for named in (f"the model {EVIL}", "the policy ask-always", "the folder /etc"):
        assert f"the file names {named}, which is not used here" in done.err
    line = summary_of(run)
    assert not {"model", "policy", "folder"} & {name for name, value in line.items() if value}
    assert line["workspace"] == str(tmp_path / "holdfast/sessions/forged/workspace")
    assert "no session was started in this folder" in run("-c", "hi").err
    for command in (("-r", "forged", "hi"), ("fork", "forged", "--event", "2", "-n", "other")):
        run(*command)
    assert run("-r", "other", "hi").err.count("no model is configured") == 1
    assert EVIL not in run("sessions", "--json").out


def test_f44_the_person_chooses_model_and_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    file = forge(tmp_path / "f.zip", entries=[file_entry("a.txt", b"one")], contents=(b"one",))
    done = run("import", str(file), "--model", "anthropic:claude-x", "-w", "shop", "--json")
    assert done.code == 0, done.err
    line = json.loads(done.out)
    assert (line["model"], line["workspace"]) == ("anthropic:claude-x", str(tmp_path / "shop"))
    assert line["wanted"]["model"] == EVIL
    assert (tmp_path / "shop/a.txt").read_bytes() == b"one"


def test_f44_files_are_restored_only_to_an_empty_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/mine.txt").write_text("mine")
    done = run("import", str(forge(tmp_path / "f.zip")), "-w", "shop")
    assert (done.code, "is not empty" in done.err) == (2, True)
    listed = run("sessions", "--json")
    assert listed.out.strip() == "[]", listed.err


def test_f45_files_after_a_rewind_are_those_of_the_session(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "private.txt").write_text("private")
    file = forge(
        tmp_path / "f.zip", entries=[file_entry("a.txt", b"one")], contents=(b"one",), workspace=str(mine)
    )
    assert run("import", str(file)).code == 0
    done = run("rewind", "forged", "--to", "1")
    assert done.code == 0, done.err
    assert "private.txt" not in run("files", "ls", "forged").out
    assert run("files", "cat", "forged", "private.txt").code != 0
    assert run("files", "cat", "forged", "a.txt").out == "one"
    assert summary_of(run)["workspace"] == str(tmp_path / "holdfast/sessions/forged/workspace")


_CHOICE = st.sampled_from(["", "a", "b"])
_EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda w, m, p: msgspec.structs.replace(opened(), workspace=w, model=m, policy=p),
            _CHOICE,
            _CHOICE,
            _CHOICE,
        ),
        st.builds(
            lambda w, m, p: SessionReconfigured(workspace=w, model=m, policy=p), _CHOICE, _CHOICE, _CHOICE
        ),
        st.builds(lambda code: Noted(code=code, text=""), st.sampled_from(["imported", "other"])),
        st.builds(lambda seq: SessionRewound(turn=1, seq=seq, principal=PERSON), st.integers(0, 12)),
        st.builds(lambda n: turn(n)[0], st.integers(1, 3)),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(_EVENTS)
def test_f45_store_and_session_agree_about_what_was_chosen(events: list[Event]) -> None:
    id = SessionId("s-1")
    recorded = [
        RecordedEvent(session=id, seq=seq, at_ms=0, event=event, hash=b"")
        for seq, event in enumerate((opened(), *events), start=1)
    ]
    line, status = summarize(id, recorded).summary, Status(ReplayedHistory(recorded))
    assert (line.workspace, line.model, line.policy) == (workspace_of(recorded), status.model, status.policy)
    assert isinstance(recorded[0].event, SessionOpened)


INVALID_ENTRIES: dict[str, dict[str, object]] = {
    "NUL": file_entry("a\0b"),
    "NUL in a folder": {"path": "a\0b", "kind": "folder", "mode": 0o755},
    "NUL in a target": {"path": "a", "kind": "link", "target": "b\0c"},
    "an unknown escape": file_entry("a\\qb"),
    "half an escape": file_entry("a\\ud8"),
    "an escape that is not a number": file_entry("a\\uzzzz"),
    "an escape with a sign": file_entry("a\\u+0dc"),
    "an escaped NUL": file_entry("a\\u0000b"),
    "an escaped slash": file_entry("a\\u002fb"),
    "a surrogate of no byte": file_entry("a\\ud800"),
    "a trailing backslash": file_entry("a\\"),
    "above the workspace": file_entry("../a"),
    "absolute": file_entry("/etc/a"),
    "empty": file_entry(""),
    "the workspace itself": {"path": ".", "kind": "folder", "mode": 0o755},
    "a long name": file_entry("n" * 300),
    "a long path": file_entry("/".join(["n" * 200] * 30)),
    "a setuid program": file_entry("a", mode=0o4755),
    "a negative mode": file_entry("a", mode=-1),
    "a negative size": file_entry("a", size=-1),
    "an empty target": {"path": "a", "kind": "link"},
    "content that is not there": file_entry("a", b"nowhere"),
    "a name that is no digest": file_entry("a", fingerprint="../../key"),
    "a file in a file": file_entry("first/a"),
    "a number too large": file_entry("a", size=10**30),
}


@pytest.mark.parametrize("kind", INVALID_ENTRIES)
@pytest.mark.promise("P11")
def test_f46_an_invalid_entry_imports_nothing(run: Run, tmp_path: Path, kind: str) -> None:
    entries = [file_entry("first", b"one"), INVALID_ENTRIES[kind]]
    done = run("import", str(forge(tmp_path / "f.zip", entries=entries, contents=(b"one", b"x"))))
    assert done.code in (1, 2)
    assert "internal error" not in done.err
    assert "Traceback" not in done.err, done
    listed = run("sessions", "--json")
    assert listed.out.strip() == "[]", listed.err
    assert not (tmp_path / "holdfast/sessions/forged").exists()


def test_f46_a_failed_import_leaves_the_chosen_folder_empty(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    entries = [file_entry("a/first", b"one"), file_entry("b", b"nowhere")]
    assert run(
        "import", str(forge(tmp_path / "f.zip", entries=entries, contents=(b"one",))), "-w", "shop"
    ).code
    assert list((tmp_path / "shop").iterdir()) == []


def test_f46_a_second_import_does_not_touch_the_files_of_the_first(run: Run, tmp_path: Path) -> None:
    file = str(forge(tmp_path / "f.zip", entries=[file_entry("a.txt", b"one")], contents=(b"one",)))
    assert run("import", file).code == 0
    own = tmp_path / "holdfast/sessions/forged/workspace/a.txt"
    own.write_text("changed since")
    assert run("import", file).code == 1
    assert own.read_text() == "changed since"


def test_what_a_file_brings_is_shown(run: Run, tmp_path: Path) -> None:
    entries = [file_entry(path, b"x") for path in (".envrc", "sub/Makefile", "a.txt")]
    file = str(forge(tmp_path / "f.zip", entries=entries, contents=(b"x",), limits=Limits(tokens=5000)))
    done = run("import", file)
    assert done.code == 0, done.err
    assert "this runs when you enter the folder with direnv: .envrc\n" in done.err
    assert "this runs when you run make: sub/Makefile\n" in done.err
    assert "its budget is tokens=5,000, as in the file" in done.err
    assert run("delete", "forged", "--yes").code == 0
    assert json.loads(run("import", file, "--json").out)["executed"] == [".envrc", "sub/Makefile"]


@pytest.mark.promise("P11")
def test_a_file_can_not_raise_the_budget_of_this_machine(run: Run, tmp_path: Path) -> None:
    assert run("config", "set", "budget.tokens", "1000").code == 0
    file = str(forge(tmp_path / "f.zip", limits=Limits(tokens=5000, calls=7)))
    done = run("import", file)
    assert done.code == 0, done.err
    assert "the file has the budget tokens=5,000, calls=7; where yours is stricter, yours applies" in done.err
    assert "its budget is tokens=1,000, calls=7; see it with: holdfast budget show bundle" in done.err
    assert run("delete", "forged", "--yes").code == 0
    told = json.loads(run("import", file, "--json").out)
    assert (told["limits"]["tokens"], told["limits"]["calls"]) == (1000, 7)
    assert (told["wanted"]["limits"]["tokens"], told["wanted"]["limits"]["calls"]) == (5000, 7)


def test_a_file_of_another_machine_is_used_here(run: Run, tmp_path: Path) -> None:
    assert run("import", str(forge(tmp_path / "f.zip"))).code == 0
    (tmp_path / "s.py").write_text("1 + 1")
    assert run("exec", "--session", "forged", "s.py").out == "2\n"


def test_a_fork_from_an_event_of_a_file_has_none_of_its_grants(run: Run, tmp_path: Path) -> None:
    given = Grant(
        id=GrantId("g"),
        operation="world.delete",
        rule="r",
        targets=(),
        scope="session",
        given_by=PERSON,
        given_ms=0,
    )
    assert run("import", str(forge(tmp_path / "f.zip", first=[GrantGiven(grant=given)]))).code == 0
    assert run("fork", "forged", "--event", "3", "-n", "other").code == 0
    assert json.loads(run("grants", "--session", "other", "--json").out) == []
    assert "activity" not in summary_of(run, "other"), "no turn of a file goes on"


PROTECTED = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".GIT/hooks/x",
    "sub/.git/commondir",
    ".holdfast/policy.yaml",
    ".g\u200cit/config",
    ".git./config",
    "git~1/config",
    "bare/HEAD",
    "bare/config",
    "bare/objects/x",
    "bare/refs/x",
    "linked/HEAD",
    "linked/commondir",
]
"""Whatever some file system opens as a repository; a manifest need not list the folders of its files."""
LINKS = {"out": "/etc", "up": "../key", "deep/chain": "a/../../../key", "round": "deep/x/../../../key"}


@pytest.mark.promise("P11")
def test_f46_a_restore_point_of_a_file_brings_no_protected_files(run: Run, tmp_path: Path) -> None:
    entries = [file_entry(path, b"evil") for path in PROTECTED] + [file_entry("a.txt", b"one")]
    entries += [{"path": path, "kind": "link", "target": target} for path, target in LINKS.items()]
    done = run("import", str(forge(tmp_path / "f.zip", entries=entries, contents=(b"evil", b"one"))))
    assert done.code == 0, done.err
    for path in (".git", ".GIT", "sub/.git", ".holdfast", "git~1", "bare", "linked", *LINKS):
        assert f"not restored, because it is protected or leads out of the folder: {path}\n" in done.err
    assert run("rewind", "forged", "--to", "1").code == 0
    for command in (("-n", "early", "--at", "1"), ("-n", "late")):
        assert run("fork", "forged", *command).code == 0
    assert run("rewind", "early", "--to", "1").code == 0
    written = {
        path.name
        for path in (tmp_path / "holdfast/sessions").glob("*/workspace/**/*")
        if path.is_symlink() or not path.is_dir()
    }
    assert written == {"a.txt"}


def test_a_small_file_can_not_fill_the_disk_with_one_content(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = RestoreLimits(content_bytes=1_000_000, manifest_bytes=100_000)
    monkeypatch.setattr(sys.modules["holdfast.session.import_archive"], "_RESTORE", limits)
    monkeypatch.setattr(sys.modules["holdfast.session.restore_points"], "IMPORTED_LIMITS", limits)
    content = b"x" * 100_000
    repeated: dict[str, object] = {**file_entry("big", b""), "chunks": [digest_bytes(content)] * 11}
    for entries in ([repeated], [file_entry(f"f{number}", content) for number in range(11)]):
        done = run("import", str(forge(tmp_path / "f.zip", entries=entries, contents=(content, b""))))
        assert done.code == 1
        assert "more than 1,000,000 bytes" in done.err
        assert run("sessions", "--json").out.strip() == "[]"
        assert not (tmp_path / "holdfast/sessions/forged").exists()
        (tmp_path / "f.zip").unlink()
    many = [file_entry(f"f{number}", b"one") for number in range(1_000)]
    done = run("import", str(forge(tmp_path / "f.zip", entries=many, contents=(b"one",))))
    assert "more files than Holdfast reads" in done.err
    (tmp_path / "f.zip").unlink()
    once = [file_entry("f", content)]
    (tmp_path / "f.zip").unlink(missing_ok=True)
    assert (
        run(
            "import", str(forge(tmp_path / "f.zip", entries=once, early=[repeated], contents=(content, b"")))
        ).code
        == 0
    )
    for command in (("rewind", "forged", "--to", "1"), ("fork", "forged", "--at", "1")):
        assert "more than 1,000,000 bytes" in run(*command).err
    assert run("delete", "forged", "--yes").code == 0
    (tmp_path / "f.zip").unlink()
    few = [file_entry(f"f{number}", content) for number in range(9)]
    assert run("import", str(forge(tmp_path / "f.zip", entries=few, contents=(content,)))).code == 0
