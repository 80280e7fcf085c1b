"""A project folder may be opened; the whole machine, the home folder and our own may not."""

from pathlib import Path

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.world import open_folder


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
def test_what_is_no_project_is_refused(person: Path, given: str) -> None:
    (person / ".holdfast" / "sessions").mkdir(parents=True)
    (person / "link-to-root").symlink_to("/")
    (person / "file").write_text("")
    with pytest.raises(InvalidInput):
        open_folder(Path(given), person / ".holdfast")


def test_a_folder_that_holds_our_own_home_is_refused(person: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "holdfast").mkdir(parents=True)
    with pytest.raises(InvalidInput):
        open_folder(tmp_path / "data", tmp_path / "data" / "holdfast")
