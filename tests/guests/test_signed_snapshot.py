"""A signature verifies only unchanged data, with the same key and for the same engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guests.engines import KEY

from holdfast.core.errors import InvalidInput, SnapshotRefused
from holdfast.guests import SnapshotSigner, signing_key_id


@given(st.binary(max_size=200), st.text(max_size=20))
def test_signed_data_verifies(data: bytes, engine: str) -> None:
    signer = SnapshotSigner(KEY)
    assert signer.verify(engine, signer.sign(engine, data)) == data


@given(st.binary(max_size=50), st.data())
@pytest.mark.promise("P08")
def test_changed_data_does_not_verify(data: bytes, draw: st.DataObject) -> None:
    signer = SnapshotSigner(KEY)
    signed = bytearray(signer.sign("python/1", data))
    place = draw.draw(st.integers(0, len(signed) - 1))
    signed[place] ^= draw.draw(st.integers(1, 255))
    with pytest.raises(SnapshotRefused):
        signer.verify("python/1", bytes(signed))


@given(st.binary(max_size=100))
@pytest.mark.promise("P08")
def test_data_that_was_never_signed_does_not_verify(data: bytes) -> None:
    with pytest.raises(SnapshotRefused):
        SnapshotSigner(KEY).verify("python/1", data)


def test_a_signature_is_for_one_engine_and_one_key() -> None:
    signed = SnapshotSigner(KEY).sign("python/1", b"x")
    with pytest.raises(SnapshotRefused, match="belongs to 'python/1'"):
        SnapshotSigner(KEY).verify("python/2", signed)
    with pytest.raises(SnapshotRefused, match="not made here"):
        SnapshotSigner(b"another key of the same length ...").verify("python/1", signed)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(InvalidInput):
        SnapshotSigner(b"short")


def test_a_snapshot_of_an_unknown_key_is_refused_and_its_key_named() -> None:
    here, there = b"h" * 32, b"t" * 32
    signed = SnapshotSigner(there).sign("lisp 1", b"state")
    with pytest.raises(SnapshotRefused, match=signing_key_id(there)) as told:
        SnapshotSigner(here).verify("lisp 1", signed)
    assert "HOLDFAST_KEY_FILE" in str(told.value.hint)
    assert there not in signed, "the id says nothing about the key"
    assert signing_key_id(here + there) == signing_key_id(here), "the first one signs"
    assert SnapshotSigner(here + there).verify("lisp 1", signed) == b"state"
