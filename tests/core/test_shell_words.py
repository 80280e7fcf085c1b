"""Splitting of shell scripts: whatever is called simple is what bash really runs."""

import os
import shutil
import subprocess
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import SimpleCommand, split_argv, split_script

BASH = shutil.which("bash") or ""
needs_bash = pytest.mark.skipif(not BASH, reason="bash is not installed")


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("pytest -q", [["pytest", "-q"]]),
        ("npm ci && npm run build", [["npm", "ci"], ["npm", "run", "build"]]),
        ("cd web; npm test || true", [["cd", "web"], ["npm", "test"], ["true"]]),
        ("git log --oneline | head -5", [["git", "log", "--oneline"], ["head", "-5"]]),
        ("a\n\n# note\nb # note\n", [["a"], ["b"]]),
        ("a &&\n# note\n b", [["a"], ["b"]]),
        ("""git commit -m 'it'"'"'s' """, [["git", "commit", "-m", "it's"]]),
        (r'echo "a \"b\" \\ \$HOME \x" c\ d', [["echo", 'a "b" \\ $HOME \\x', "c d"]]),
        ("pip install \\\n  -r a.txt \\\n  -r b.txt", [["pip", "install", "-r", "a.txt", "-r", "b.txt"]]),
        ("echo a#b '#c'", [["echo", "a#b", "#c"]]),
        ("make FOO=bar -j4", [["make", "FOO=bar", "-j4"]]),
        ("echo 'several\nlines'", [["echo", "several\nlines"]]),
        ("echo ''", [["echo", ""]]),
        ("git diff HEAD~1 HEAD~~", [["git", "diff", "HEAD~1", "HEAD~~"]]),
    ],
)
def test_plain_scripts_are_split_into_their_commands(script: str, commands: list[list[str]]) -> None:
    assert [list(command.argv) for command in split_script(script).commands] == commands


def test_the_files_of_redirections_are_named() -> None:
    assert split_script("sort < in.txt >'out 1' 2>>log 2>&1; echo x>y >&2").commands == (
        SimpleCommand(argv=("sort",), reads=("in.txt",), writes=("out 1", "log"), appends=("log",)),
        SimpleCommand(argv=("echo", "x"), writes=("y",)),
    )


@pytest.mark.parametrize(
    "script",
    [
        "", "# only a note", "echo $HOME", 'echo "$(id)"', "echo `id`", 'echo "`id`"', "echo $'a'", 'echo $"a"', "ls *.py",
        "ls a?", "ls [ab]", "echo {a,b}", "echo ~", "echo ~/a", "echo a=~", "echo a:~/b", "echo ''~", "echo \\\n~", "a=b", "A=b cmd", "A+=b cmd", "cat << EOF\nx\nEOF", "cat <<< x",
        "diff <(a) b", "a > >(b)", "(a)", "{ a; }", "f() { a; }", "if a; then b; fi", "for x in a; do b; done", "! a", "time a",
        "[[ a ]]", "[ -f a ]", "a & b", "a &", "a |& b", "a &> b", "a >& b", "a 3>&1", "a 10> b", "a 2\\\n> b", "a {x}> b",
        "a <> b", "> a", "a >", "a;; b", "; a", "a && ", "a && ; b", "a | | b", "a\n&& b", "a ||", "a 'b", 'a "b', "a b\\",
        "a \x00", "a \x01", "a\r\nb", "a é", "a\u00a0b", "sudo a", "/usr/bin/env a", "xargs a", "timeout 5 a", "nohup a",
        "bash -c a", "bash-5.2 -c a", "sh x.sh", "eval a", "exec a", ". ./a", "source a", "command a", "builtin cd", "export PATH=a",
        "set -e", "alias a=b", "hash -p /tmp/a b", "trap a EXIT", "read a", "printf -v PATH x", "printf -vPATH x",
        "test -v 'a[$(id)]'", "find . -exec a", "fd -x a", "if", "'if' a", "i\\\nf a", "-c a", "+x a", "%1", "'' a", "\"\"",
        "a > /dev/tcp/1.2.3.4/80", "echo \\é", "coproc a", "function f { a; }", "a >& 2", "a 2>&1x", "a >#b",
    ],
)  # fmt: skip
def test_everything_else_is_opaque(script: str) -> None:
    assert split_script(script).is_opaque


def test_an_opaque_script_has_the_words_of_nested_scripts() -> None:
    assert split_script("sudo sh -c 'np\"m\" publish' && x=$(git \\\n push)").words == (
        "sudo", "sh", "-c", "npm", "publish", "x", "git", "push",
    )  # fmt: skip


def test_an_argument_list_is_one_command_and_a_shell_with_a_script_is_its_script() -> None:
    assert split_argv(["echo", "a && b", "*"]).commands == (SimpleCommand(argv=("echo", "a && b", "*")),)
    assert split_argv(["bash", "-c", "a && b"]) == split_script("a && b")
    assert split_argv(["bash", "-c", "a", "b"]).is_opaque
    assert split_argv(["sudo", "npm", "publish"]).is_opaque
    assert split_argv(["sudo", "npm publish"]).words == ("sudo", "npm", "publish")
    assert split_argv([]).is_opaque


def test_a_long_script_is_opaque_and_takes_no_time() -> None:
    for text in ("a " * 100_000, "\\\n" * 100_000, '"' + "a" * 100_000, "a'" * 100_000, "a;" * 100_000):
        assert split_script(text).is_opaque
        assert len(split_script(text[:65_000]).words) <= 65_000


NAMES = sorted({"".join(letters) for size in (1, 2, 3) for letters in product("ab2", repeat=size)})
PIECES = [
    *"ab2 \t\n;&|<>'\"\\#$`()*?[]{}!~=-%^,:@é\r\x01",
    *(
        "&&",
        "||",
        "2>&1",
        ">>",
        " > ",
        " < ",
        ">|",
        "<<",
        "\\\n",
        " && ",
        " ; ",
        " | ",
        "\n",
        "''",
        '"a b"',
        "'a;b'",
    ),
    *(
        "echo ",
        "cd ",
        "true ",
        "false ",
        "test ",
        "exit ",
        "if ",
        "then ",
        "fi",
        "do ",
        "done",
        "time ",
        "exec ",
        "eval ",
    ),
    *(
        "a=b ",
        "export a=b",
        "PATH=a ",
        "set -e",
        "printf -v PATH b",
        "alias a=b",
        "read a",
        "in ",
        "function ",
    ),
]
STEPS = st.lists(
    st.sampled_from(NAMES) | st.sampled_from([" ", " a", " 2"]) | st.sampled_from(PIECES), max_size=14
)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that record how they were called and do nothing else."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / NAMES[0]
    program.write_text('#!/bin/sh\nprintf \'%s\\0\' "$#" "${0##*/}" "$@" >> "$RECORD"\n')
    program.chmod(0o755)
    for name in NAMES[1:]:
        os.link(program, folder / name)
    return folder


def run_in_bash(script: str, recorder: Path, folder: Path) -> tuple[list[tuple[str, ...]], set[str]]:
    """What bash ran, and the files that it made."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "cwd").mkdir(parents=True)
    record = folder / "record"
    record.touch()
    subprocess.run(
        [BASH, "-c", script], cwd=folder / "cwd", env={"PATH": str(recorder), "RECORD": str(record)},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20, check=False,
    )  # fmt: skip
    fields = record.read_text().split("\0")[:-1]
    ran = []
    while fields:
        size = 2 + int(fields[0])
        ran.append(tuple(fields[1:size]))
        fields = fields[size:]
    return ran, {path.name for path in (folder / "cwd").iterdir()}


def check_against_bash(script: str, recorder: Path, folder: Path) -> bool:
    """Compare what was announced with what bash ran; False if the script is opaque."""
    split = split_script(script)
    if split.is_opaque:
        return False
    ran, files = run_in_bash(script, recorder, folder)
    announced = Counter(command.argv for command in split.commands if command.argv[0] in NAMES)
    assert Counter(ran) <= announced
    assert files <= {name for command in split.commands for name in command.writes}
    if (
        all(command.argv[0] in NAMES and not command.reads for command in split.commands)
        and "||" not in script
    ):
        assert Counter(ran) == announced
    return True


@needs_bash
@given(st.one_of(STEPS.map("".join), STEPS.map(" ".join), STEPS.map(lambda steps: "a ".join(["", *steps]))))
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_bash_runs_exactly_what_a_simple_script_announces(
    recorder: Path, tmp_path: Path, script: str
) -> None:
    check_against_bash(script, recorder, tmp_path / "run")


@needs_bash
@pytest.mark.soak
@pytest.mark.timeout(1800)
@given(st.one_of(STEPS.map("".join), STEPS.map(" ".join), STEPS.map(lambda steps: "a ".join(["", *steps]))))
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_bash_runs_exactly_what_many_simple_scripts_announce(
    recorder: Path, tmp_path: Path, script: str
) -> None:
    check_against_bash(script, recorder, tmp_path / "run")
