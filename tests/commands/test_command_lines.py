"""The corpus of command lines, as the splitter of scripts sees it."""

from tests.commands.command_lines import command_lines

from holdfast.core import split_script

KINDS = {"test", "build", "lint", "install", "git", "inspect", "run", "files", "dangerous"}


def test_the_corpus_has_more_than_five_hundred_lines_of_every_kind() -> None:
    lines = list(command_lines())
    assert {line.kind for line in lines} == KINDS
    assert len({line.command for line in lines if line.kind != "dangerous"}) >= 500
    assert len({line.command for line in lines}) == len(lines)


def test_most_ordinary_command_lines_are_simple() -> None:
    ordinary = [line.command for line in command_lines() if line.kind != "dangerous"]
    simple = [command for command in ordinary if not split_script(command).is_opaque]
    assert len(simple) / len(ordinary) > 0.9


def test_the_words_of_a_dangerous_command_line_are_seen_wherever_it_is_opaque() -> None:
    for line in command_lines():
        split = split_script(line.command)
        if line.kind == "dangerous" and split.is_opaque:
            assert {
                "rm",
                "curl",
                "wget",
                "sudo",
                "twine",
                "cat",
                "git",
                "history",
                "ssh-rsa",
                "apt-get",
            } & set(split.words), line
