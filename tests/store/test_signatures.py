"""Signatures of exports: what one covers, which key signs, and what an export without one says."""

import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.commands import Run, run
from tests.store.sample_events import opened, turn

from holdfast.core import SessionId, digest_bytes
from holdfast.core.errors import HoldfastError, InvalidConfig, StoreUnavailable
from holdfast.core.events import GENESIS, encode_event, event_hash
from holdfast.store import Home, HomeSignatures
from holdfast.store.archive.format import ArchiveReader, RawEvent, pack
from holdfast.store.contract import ArchiveManifest, ArchiveSignature, JournalProblem

__all__ = ["run"]


def _signed(home: Home, path: Path, *, problems: tuple[JournalProblem, ...] = ()) -> bytes:
    lines: list[RawEvent] = []
    previous = GENESIS
    for seq, event in enumerate((opened(folder="/"), *turn(1)), start=1):
        body = encode_event(event)
        previous = event_hash(previous, "one", seq, 5, body)
        lines.append(RawEvent(session=SessionId("one"), seq=seq, at_ms=5, hash=previous, body=body))
    manifest = ArchiveManifest(
        session=SessionId("one"),
        events=len(lines),
        last_hash=previous.hex(),
        exported_ms=0,
        problems=problems,
    )
    with path.open("w+b") as file:
        pack(file, manifest, lines, [(digest_bytes(b"content"), b"content")], HomeSignatures(home).sign)
    return path.read_bytes()


def _read(home: Home, path: Path) -> tuple[str, object]:
    reader = ArchiveReader(path)
    try:
        found = reader.journal()
        digests = reader.digests()
        return reader.signer(HomeSignatures(home).signer), (found, digests)
    finally:
        reader.close()


@pytest.mark.promise("P20")
def test_a_flipped_bit_anywhere_is_refused_or_a_strangers_or_changes_nothing(tmp_path: Path) -> None:
    home, path = Home(tmp_path / "home"), tmp_path / "it.zip"
    content = _signed(home, path)
    signer, original = _read(home, path)
    assert signer == "this-home"

    @settings(max_examples=400, deadline=None)
    @given(st.integers(0, len(content) * 8 - 1))
    def flip(bit: int) -> None:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found, read = _read(home, path)
        except HoldfastError:
            return
        assert not found or read == original  # a time stamp of the ZIP file says nothing

    flip()


def test_a_damaged_session_is_not_signed(tmp_path: Path) -> None:
    problem = JournalProblem(seq=9, what="missing")
    _signed(Home(tmp_path / "home"), tmp_path / "it.zip", problems=(problem,))
    with zipfile.ZipFile(tmp_path / "it.zip") as archive:
        assert "signature.json" not in archive.namelist()


def test_every_home_has_its_own_private_key(tmp_path: Path) -> None:
    one, two = HomeSignatures(Home(tmp_path / "one")), HomeSignatures(Home(tmp_path / "two"))
    signature = one.sign(b"statement")
    assert (tmp_path / "one/export-key").stat().st_mode & 0o777 == 0o600
    assert one.signer(b"statement", signature) == "this-home"
    assert one.signer(b"another", signature) == ""
    assert two.signer(b"statement", signature) == ""
    assert not (tmp_path / "two/export-key").exists(), "an import needs no key"
    (tmp_path / "two").mkdir(exist_ok=True)
    (tmp_path / "two/trusted-export-keys").write_text(one.public_key())
    assert two.signer(b"statement", signature) == "trusted-home"
    assert two.signer(b"another", signature) == ""


@pytest.mark.parametrize("key", ["", "zz", "ff" * 32, "00" * 31])
def test_a_malformed_key_signs_nothing(tmp_path: Path, key: str) -> None:
    home = Home(tmp_path)
    home.trusted_export_keys.write_text(f"holdfast-export-key {key}\n")
    for value in ("", "zz", "00" * 64, "ff" * 64):
        assert HomeSignatures(home).signer(b"statement", ArchiveSignature(key=key, value=value)) == ""


def test_a_damaged_key_signs_nothing_and_trusted_keys_must_be_readable(tmp_path: Path) -> None:
    home = Home(tmp_path)
    signature = HomeSignatures(home).sign(b"statement")
    (tmp_path / "export-key").write_bytes(b"short")
    with pytest.raises(StoreUnavailable):
        HomeSignatures(home).sign(b"statement")
    assert HomeSignatures(home).signer(b"statement", signature) == ""
    home.trusted_export_keys.mkdir()
    with pytest.raises(InvalidConfig):
        HomeSignatures(home).signer(b"statement", signature)


def test_the_public_key_is_printed_and_the_secret_is_in_no_output(run: Run, tmp_path: Path) -> None:
    done = run("export", "--public-key")
    word, key = done.out.split()
    assert (word, len(key), done.code) == ("holdfast-export-key", 64, 0)
    secret = (tmp_path / "holdfast/export-key").read_bytes()
    assert secret.hex() not in done.out + run("export", "--public-key", "--json").out
    assert run("export", "--public-key", "--all").code == 2
