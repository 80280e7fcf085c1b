"""What a program receives from a call is whole, in every sandbox: nothing is cut, whatever its size."""

import json
import random
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.guests.test_exec_command import install_component

from holdfast.core import digest_bytes
from holdfast.store import Home

__all__ = ["run"]  # a fixture that pytest finds by its name here

pytestmark = pytest.mark.timeout(900)  # the first test may wait for the build of the component

LANGUAGES = ("python", "lisp", "wasi")
EDIT_TEXT = {
    "python": "t = world.read(path='data.csv')\nworld.write(path='data.csv', content=t.replace('7', 'seven'))",
    "wasi": "t = world.read(path='data.csv')\nworld.write(path='data.csv', content=t.replace('7', 'seven'))",
    "lisp": '(world/write "data.csv" (string-replace (world/read "data.csv") "7" "seven"))',
    "system": "t = open('data.csv').read()\nopen('data.csv', 'w').write(t.replace('7', 'seven'))",
}
COPY_BINARY = {
    "python": "world.write(path='b', content=world.read(path='a', encoding='base64'), encoding='base64')",
    "wasi": "world.write(path='b', content=world.read(path='a', encoding='base64'), encoding='base64')",
    "lisp": '(world/write :path "b" :encoding "base64" :content (world/read :path "a" :encoding "base64"))',
}
EDIT_WITH_OPEN = {
    "python": "with open('data.csv') as f: t = f.read()\nwith open('data.csv', 'w') as f: f.write(t.replace('7', '8'))",
    "lisp": '(world/write "data.csv" (string-replace (world/read "data.csv") "7" "8"))',
}
READ = {
    "python": "world.read(path='data.csv')",
    "wasi": "world.read(path='data.csv')",
    "lisp": '(world/read "data.csv")',
}
LIST = {
    "python": "n = world.list()\n[len(n), n[0], n[-1]]",
    "wasi": "n = world.list()\n[len(n), n[0], n[-1]]",
    "lisp": "(define n (world/list)) (list (length n) (first n) (last n))",
}
COUNT = {
    "python": "import os\nn = world.list()\n"
    "[len(n), n[0], n[-1], len(world.entries(path='.')), len(os.listdir('.'))]",
    "wasi": "import os\nn = world.list()\n"
    "[len(n), n[0], n[-1], len(world.entries(path='.')), len(os.listdir('.'))]",
    "lisp": '(define n (world/list)) (list (length n) (first n) (last n) (length (world/entries ".")) (length n))',
}

SCAN = {
    "python": "n = 0\nfor line in open('large.txt'):\n    n += len(line)\nn",
    "wasi": "n = 0\nfor line in open('large.txt'):\n    n += len(line)\nn",
    "lisp": """
        (let loop ((offset 0) (n 0))
          (let ((piece (world/read :path "large.txt" :offset offset :length 4000000)))
            (if (equal? piece "") n (loop (+ offset 4000000) (+ n (string-length piece))))))""",
}


class Project:
    """A folder in which code runs; `execute` commits what the code staged."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self.folder = folder

    def execute(self, language: str, code: str) -> str:
        """Run the code, commit its changes and return its output."""
        program = self.folder.parent / "program"
        program.write_text(code)
        done = self._run(
            "exec", "--trust", "-w", str(self.folder), "-p", "project", "--lang", language, str(program)
        )
        assert done.code == 0, done.err + done.out
        if "write" in code:
            committed = self._run("proposals", "commit")
            assert committed.code == 0, committed.err
        return done.out


@pytest.fixture
def project(run: Run, tmp_path: Path) -> Project:
    install_component(Home(tmp_path / "holdfast"))
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(run, folder)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "size", [pytest.param(10_000, marks=pytest.mark.soak), pytest.param(437_780, marks=pytest.mark.soak)]
)
def test_f01_a_text_file_is_edited_whole(project: Project, language: str, size: int) -> None:
    text = csv(size)
    (project.folder / "data.csv").write_text(text)
    project.execute(language, EDIT_TEXT[language])
    assert (project.folder / "data.csv").read_text() == text.replace("7", "seven")


@pytest.mark.parametrize("language", LANGUAGES)
def test_f01_a_binary_file_is_copied_whole(project: Project, language: str) -> None:
    content = random.Random(1).randbytes(200_000)
    (project.folder / "a").write_bytes(content)
    project.execute(language, COPY_BINARY[language])
    assert (project.folder / "b").read_bytes() == content


@pytest.mark.parametrize(
    "megabytes", [2, pytest.param(8, marks=pytest.mark.soak), pytest.param(50, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("language", [*LANGUAGES, pytest.param("system", marks=pytest.mark.soak)])
def test_f01_a_large_file_is_edited_whole(project: Project, language: str, megabytes: int) -> None:
    text = csv(1_000_000) * megabytes
    (project.folder / "data.csv").write_text(text)
    project.execute(language, EDIT_TEXT[language])
    written = (project.folder / "data.csv").read_bytes()
    assert digest_bytes(written) == digest_bytes(text.replace("7", "seven").encode())


@pytest.mark.parametrize(
    ("megabytes", "value_megabytes"), [(3, 4), pytest.param(51, 64, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("language", EDIT_WITH_OPEN)
def test_f01_a_large_file_with_an_emoji_is_edited_whole(
    project: Project, language: str, megabytes: int, value_megabytes: int
) -> None:
    config = f"[code]\nseconds = 120\nwall_seconds = 240\nvalue_bytes = {value_megabytes << 20}\n"
    (project.folder.parent / "holdfast" / "config.toml").write_text(config)
    text = "\U0001f600" + ("1,value 7,é\n" * 80_000)[:900_000] * megabytes
    (project.folder / "data.csv").write_text(text)
    if language == "python":
        code = "try:\n    world.read(path='data.csv')\nexcept OSError as error:\n    print(error)"
        assert "bytes of memory as one text" in project.execute(language, code)
    project.execute(language, EDIT_WITH_OPEN[language])
    written = (project.folder / "data.csv").read_bytes()
    assert digest_bytes(written) == digest_bytes(text.replace("7", "8").encode())


@pytest.mark.parametrize("language", LANGUAGES)
def test_f01_a_file_larger_than_one_read_is_read_line_by_line(project: Project, language: str) -> None:
    (project.folder.parent / "holdfast" / "config.toml").write_text("[code]\nvalue_bytes = 4194304\n")
    text = csv(1_000_000) * 5
    (project.folder / "large.txt").write_text(text)
    assert project.execute(language, SCAN[language]).strip() == str(len(text))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("language", LANGUAGES)
def test_f01_a_file_of_1_gb_is_read_line_by_line_in_256_mb(project: Project, language: str) -> None:
    home = project.folder.parent / "holdfast"
    (home / "config.toml").write_text(
        "[code]\nseconds = 1800\nwall_seconds = 3600\nmemory_bytes = 268435456\n"
    )
    piece = "".join(f"{number}: {'é' * 50} {number * 7}\n" for number in range(100_000))
    count = (1 << 30) // len(piece.encode()) + 1
    with (project.folder / "large.txt").open("w") as file:
        for _ in range(count):
            file.write(piece)
    assert project.execute(language, SCAN[language]).strip() == str(count * len(piece))


@pytest.mark.parametrize("language", LANGUAGES)
def test_f02_a_folder_of_1200_entries_is_listed_whole(project: Project, language: str) -> None:
    fill(project.folder, 1_200)
    out = project.execute(language, COUNT[language])
    assert json.loads(out) == [1_200, "000000.txt", "001199.txt", 1_200, 1_200]


@pytest.mark.soak
@pytest.mark.parametrize("count", [3_000, 100_000])
@pytest.mark.parametrize("language", LANGUAGES)
def test_f02_a_large_folder_is_listed_whole(project: Project, language: str, count: int) -> None:
    fill(project.folder, count)
    out = project.execute(language, LIST[language])
    assert json.loads(out) == [count, "000000.txt", f"{count - 1:06}.txt"]


@pytest.mark.parametrize(
    "language", ["python", *(pytest.param(each, marks=pytest.mark.soak) for each in ("lisp", "wasi"))]
)
def test_f01_show_full_prints_the_whole_result(project: Project, run: Run, language: str) -> None:
    text = csv(437_780) + "blanks \t \n\n  "
    (project.folder / "data.csv").write_text(text)
    project.execute(language, READ[language])
    assert text.splitlines()[20_000] not in run("show").out
    assert f"    returned: {text}\n".replace("\n", "\n    ") in run("show", "--full").out
    events = [each["event"] for each in json.loads(run("show", "--full", "--json").out)["events"]]
    assert [event["result"] for event in events if "whole" in event and "call" in event] == [text]


def test_f01_blobs_of_results_move_and_go_with_their_session(
    project: Project, run: Run, tmp_path: Path
) -> None:
    text = csv(437_780)
    (project.folder / "data.csv").write_text(text)
    project.execute("python", READ["python"])
    archive = tmp_path / "archive"
    assert run("export", "-o", str(archive)).code == 0
    session = json.loads(run("show", "--json").out)["session"]["id"]
    assert run("delete", session, "--yes").code == 0
    assert run("import", str(archive)).code == 0
    assert text.splitlines()[20_000] in run("show", "--full").out
    assert run("verify").code == 0
    assert run("replay").code == 0


def fill(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"{number:06}.txt").touch()


def csv(size: int) -> str:
    """A table of this many characters."""
    rows = "".join(f"{number},value {number * 7},é\n" for number in range(size // 10))
    return rows[:size]
