"""A project folder may be opened; system folders, the user's home and our own may not."""

import re
from pathlib import Path

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.world import open_folder
from holdfast.world.folder.open_folder import is_system_folder


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "users" / "person"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_a_project_is_opened_by_its_real_path(person: Path) -> None:
    (person / "project").mkdir()
    (person / "link").symlink_to("project")
    assert open_folder(person / "link", person / ".holdfast") == person / "project"
    assert open_folder(Path("~/project"), person / ".holdfast") == person / "project"


@pytest.mark.parametrize(
    "given",
    ["/", "~", "~/..", "~/.holdfast", "~/.holdfast/sessions", "~/link-to-root", "~/missing", "~/file"],
)
def test_a_folder_that_is_not_a_project_is_refused(person: Path, given: str) -> None:
    (person / ".holdfast" / "sessions").mkdir(parents=True)
    (person / "link-to-root").symlink_to("/")
    (person / "file").write_text("")
    with pytest.raises(InvalidInput):
        open_folder(Path(given), person / ".holdfast")


def test_a_folder_that_holds_our_own_home_is_refused(person: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "holdfast").mkdir(parents=True)
    with pytest.raises(InvalidInput):
        open_folder(tmp_path / "data", tmp_path / "data" / "holdfast")


@pytest.mark.parametrize(
    "real",
    [
        "/",
        "/bin",
        "/boot/grub",
        "/dev",
        "/dev/shm",
        "/etc",
        "/etc/nginx",
        "/home",
        "/lib64",
        "/opt",
        "/proc/1",
        "/root",
        "/run",
        "/srv",
        "/sys",
        "/tmp",
        "/usr",
        "/usr/bin",
        "/usr/lib/python3",
        "/usr/local",
        "/usr/local/bin",
        "/usr/src",
        "/var",
        "/var/lib",
        "/var/tmp",
    ],
)
def test_a_system_folder_is_refused(real: str) -> None:
    assert is_system_folder(real)


@pytest.mark.parametrize(
    "real",
    [
        "/data",
        "/dev/shm/trial",
        "/etcetera",
        "/home/person",
        "/mnt/disk",
        "/opt/tool",
        "/root/project",
        "/run/user/1000/trial",
        "/srv/site",
        "/tmp/trial",
        "/usr/local/src/tool",
        "/usr/src/app",
        "/usr/share/nginx/html",
        "/var/lib/jenkins/workspace",
        "/var/www",
        "/workspace",
    ],
)
def test_a_project_in_a_shared_folder_is_accepted(real: str) -> None:
    assert not is_system_folder(real)


@pytest.mark.parametrize("given", ["{place}", "{place}/inner", "{link}"])
def test_a_folder_of_the_system_is_refused_by_whatever_name(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    place, link = tmp_path / "system", person / "link"
    (place / "inner").mkdir(parents=True)
    link.symlink_to(place)
    monkeypatch.setattr(
        "holdfast.world.folder.open_folder._SYSTEM_TREE", re.compile(f"{re.escape(str(place))}(/.*)?")
    )
    with pytest.raises(InvalidInput, match="is a system folder") as refused:
        open_folder(Path(given.format(place=place, link=link)), person / ".holdfast")
    assert refused.value.hint
