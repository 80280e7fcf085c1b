"""The compiled component on disk is verified before it is loaded, built once, and never loaded by the host itself."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, run

from holdfast.core.errors import EngineMissing, EngineNotBuilt, GuestError
from holdfast.guests.wasi import WorkerPool, build_main, component, wasi_engine


def write_component(folder: Path, content: bytes = b"native code") -> Path:
    """A component with a valid HMAC."""
    image = component.image_path(folder, "c")
    image.write_bytes(content)
    with image.open("rb") as file:
        component.hmac_path(folder, "c").write_bytes(component.compute_hmac(file.fileno(), "c", KEY))
    return image


def opens(folder: Path, name: str = "c", key: bytes = KEY) -> bool:
    descriptor = component.open_verified(folder, name, key)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def test_a_verified_component_is_opened(tmp_path: Path) -> None:
    write_component(tmp_path)
    assert opens(tmp_path)


def test_a_component_with_one_changed_bit_is_not_opened(tmp_path: Path) -> None:
    image = write_component(tmp_path)
    image.write_bytes(b"native codf")
    assert not opens(tmp_path)


def test_a_component_of_another_key_or_name_is_not_opened(tmp_path: Path) -> None:
    write_component(tmp_path)
    assert not opens(tmp_path, key=b"another key that is long enough")
    for path in (component.image_path, component.hmac_path):
        path(tmp_path, "c").rename(path(tmp_path, "d"))
    assert not opens(tmp_path, name="d")


def test_a_component_without_an_hmac_or_behind_a_symlink_is_not_opened(tmp_path: Path) -> None:
    image = write_component(tmp_path)
    image.rename(tmp_path / "elsewhere")
    image.symlink_to(tmp_path / "elsewhere")
    assert not opens(tmp_path)
    component.hmac_path(tmp_path, "c").unlink()
    assert not opens(tmp_path)


def test_the_verified_content_is_read_also_after_a_swap(tmp_path: Path) -> None:
    image = write_component(tmp_path)
    descriptor = component.open_verified(tmp_path, "c", KEY)
    assert descriptor is not None
    (tmp_path / "evil").write_bytes(b"evil code")
    (tmp_path / "evil").replace(image)
    assert os.pread(descriptor, 100, 0) == b"native code"
    os.close(descriptor)


def test_only_the_owner_can_read_the_component(cache: Path) -> None:
    assert component.is_built(cache=cache)
    for path in (component.image_path, component.hmac_path):
        assert path(cache, component.component_name()).stat().st_mode & 0o777 == 0o600


async def test_a_built_component_is_not_built_again(cache: Path, workspace: Path) -> None:
    output: list[str] = []
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, progress=output.append)
    assert (await run(engine.guest(), "1")).value == 1
    assert output == []
    await engine.close()


async def test_a_run_neither_uses_an_unverified_component_nor_builds_one(tmp_path: Path) -> None:
    engine = wasi_engine(key=KEY, cache=tmp_path, workspace=tmp_path)
    with pytest.raises(EngineNotBuilt):
        await run(engine.guest(), "1")
    component.image_path(tmp_path, component.component_name()).write_bytes(b"evil")
    component.hmac_path(tmp_path, component.component_name()).write_bytes(b"0" * 64)
    with pytest.raises(EngineNotBuilt):
        await run(engine.guest(), "1")
    assert component.image_path(tmp_path, component.component_name()).read_bytes() == b"evil"
    await engine.close()


def test_without_the_extra_the_engine_is_missing_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(EngineMissing) as missing:
        wasi_engine(key=KEY, cache=tmp_path, workspace=tmp_path)
    assert missing.value.code == "engine-missing"
    assert missing.value.hint is not None
    assert "holdfast doctor" in missing.value.hint


def test_importing_wasi_loads_no_engine() -> None:
    program = "import sys, holdfast.guests.wasi\nprint([m for m in ('wasmtime', 'componentize_py') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_only_the_newest_components_are_kept(tmp_path: Path) -> None:
    for age in range(5):
        for suffix in (".cwasm", ".hmac"):
            path = tmp_path / f"python-{age}{suffix}"
            path.touch()
            os.utime(path, (1000 - age, 1000 - age))
    build_main._remove_old(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.cwasm")) == [
        f"python-{age}.cwasm" for age in range(3)
    ]
    assert len(list(tmp_path.iterdir())) == 6


def test_the_next_build_removes_the_folder_of_a_killed_builder(tmp_path: Path) -> None:
    (tmp_path / "build-left" / "app").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "build-link").symlink_to(tmp_path / "elsewhere")
    with component.build_folder(tmp_path, on_wait=pytest.fail) as folder:
        assert set(tmp_path.glob("build-*")) == {folder, tmp_path / "build-link"}
    assert (tmp_path / "elsewhere").exists()


def test_the_folder_of_a_running_builder_is_not_removed(tmp_path: Path) -> None:
    with component.build_folder(tmp_path, on_wait=pytest.fail) as folder:
        component.remove_leftovers(tmp_path)
        assert folder.exists()


async def test_a_killed_builder_is_reported_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import os, sys; os.mkdir(sys.argv[1] + '/build-1'); sys.stderr.write('warning'); sys.stderr.flush(); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(component, "_BUILDER", program)
    with pytest.raises(GuestError, match="ended by SIGKILL"):
        await component.open_or_build(key=KEY, cache=tmp_path, progress=pytest.fail)
    assert [path.name for path in tmp_path.iterdir()] == ["build.lock"]


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_two_processes_build_one_component(tmp_path: Path) -> None:
    output: list[str] = []
    both = [WorkerPool(key=KEY, cache=tmp_path, progress=output.append) for _ in range(2)]
    await asyncio.gather(*(workers.prepare() for workers in both))
    assert [line for line in output if "ready" in line] == ["the sandbox is ready"]
    for workers in both:
        await workers.close()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cwasm", ".hmac", ".lock"]


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_damaged_component_is_rebuilt_and_a_cancelled_build_leaves_nothing(tmp_path: Path) -> None:
    started = asyncio.Event()
    workers = WorkerPool(key=KEY, cache=tmp_path, progress=lambda _: started.set())
    building = asyncio.create_task(workers.prepare())
    await started.wait()
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert [path.name for path in tmp_path.iterdir()] == ["build.lock"]
    await workers.prepare()
    await workers.close()
    component.image_path(tmp_path, component.component_name()).write_bytes(b"evil")
    engine = wasi_engine(key=KEY, cache=tmp_path, workspace=tmp_path)
    guest = engine.guest()
    with pytest.raises(EngineNotBuilt) as unready:
        await run(guest, "1")
    await unready.value.make_ready()
    assert (await run(guest, "1")).value == 1
    await engine.close()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cwasm", ".hmac", ".lock"]
