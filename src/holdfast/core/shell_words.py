r"""Conservative splitting of shell scripts into simple commands, for rules on command words.

A script is simple if it consists of words, quotes, `;`, `&&`, `||`, `|`, newlines, comments and plain redirections, and if every
program in it is named by its first word. Then `split_script` returns exactly the commands that bash and POSIX sh may run. Anything
else is opaque: expansions, globs, assignments, control flow, here-documents, and programs such as `sudo` or `xargs` that run
another program. The walls are elsewhere: a program that was named can still run others.
"""

import re
from collections.abc import Sequence
from typing import Literal

from holdfast.core.values import Value

MAX_SCRIPT_LENGTH = 65_536
"""A longer script is opaque."""


class SimpleCommand(Value):
    """One program with its arguments, and the files of its redirections."""

    argv: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    appends: tuple[str, ...] = ()
    """Those of `writes` that keep what is in the file."""


class ScriptWords(Value):
    """A script as rules see it."""

    commands: tuple[SimpleCommand, ...]
    """What the script may run, in order. Empty if the script is opaque."""
    words: tuple[str, ...]
    """Every word, also of nested scripts: without quotes, split at each operator. For denials of opaque scripts."""

    @property
    def is_opaque(self) -> bool:
        return not self.commands


def split_script(script: str) -> ScriptWords:
    """The simple commands of a script for `bash -c` or `sh -c`, or its words if it is opaque."""
    commands = _split(script) if len(script) <= MAX_SCRIPT_LENGTH else None
    return ScriptWords(commands=tuple(commands or ()), words=loose_words(script))


def split_argv(argv: Sequence[str]) -> ScriptWords:
    """The same for a program that runs without a shell. `bash -c SCRIPT` is split as its script."""
    if len(argv) == 3 and argv[0] in _SHELLS and argv[1] == "-c":
        return split_script(argv[2])
    words = tuple(word for part in argv for word in loose_words(part))
    command = SimpleCommand(argv=tuple(argv))
    return ScriptWords(commands=() if _is_opaque_command(command) else (command,), words=words)


def loose_words(script: str) -> tuple[str, ...]:
    """The words of any text, with quotes and backslashes removed and split at every operator."""
    text = _JOINED.sub("", script[:MAX_SCRIPT_LENGTH])
    return tuple(word for word in _BETWEEN_WORDS.split(text) if word)


_SHELLS = frozenset(("bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"))
_KEYWORDS = frozenset((
    "!", "[[", "]]", "[", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "time", "until", "while",
))  # fmt: skip
_BUILTINS = frozenset((
    ".", "alias", "bg", "bind", "break", "builtin", "caller", "command", "compgen", "complete", "compopt", "continue",
    "declare", "dirs", "disown", "enable", "eval", "exec", "export", "fc", "fg", "getopts", "hash", "help", "history",
    "jobs", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "return", "set",
    "shift", "shopt", "source", "suspend", "times", "trap", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
))  # fmt: skip
"""Builtins that run commands or change what later words mean. The others (`cd`, `echo`, `test`, ...) are simple."""
_WRAPPERS = frozenset((
    "bash", "busybox", "chroot", "chrt", "coreutils", "csh", "dash", "dbus-run-session", "doas", "entr", "env",
    "expect", "fakeroot", "faketime", "firejail", "fish", "flock", "gdb", "ionice", "ksh", "linux32", "linux64",
    "ltrace", "mksh", "nice", "nohup", "nsenter", "numactl", "parallel", "perf", "pkexec", "proot", "rlwrap",
    "runuser", "run-parts", "script", "setarch", "setpriv", "setsid", "sg", "sh", "ssh", "start-stop-daemon",
    "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tcsh", "timeout", "toybox", "tsocks", "unbuffer",
    "unshare", "valgrind", "watch", "xargs", "xvfb-run", "yash", "zsh",
))  # fmt: skip
"""Programs whose arguments are a command or a script."""
_EXECUTING_OPTIONS = {
    "find": frozenset(("-exec", "-execdir", "-ok", "-okdir")),
    "fd": frozenset(("-x", "-X", "--exec", "--exec-batch")),
    # Both evaluate a subscript as bash code: `test -v 'a[$(date)]'`.
    "test": frozenset(("-v", "-R")),
}
_VERSIONED_SHELL = re.compile(r"(ba|z|k|da|mk|tc)?sh[-.0-9]*")

_JOINED = re.compile(r"\\\n|['\"\\]")
_BETWEEN_WORDS = re.compile(r"[\s;&|()<>{}$`=,!]+")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_WORD = re.compile(
    r"""(?!\#|\\\n)(?:
        [A-Za-z0-9_./:=@%+,^\#-]++     # not * ? [ ] { } ! and nothing beyond ASCII: `à` holds a byte that some shells call blank
      | (?<=[A-Za-z0-9_.^~])~         # as in HEAD~1; elsewhere it may stand for a home folder
      | \\[\n\t -~]
      | '[^']*+'
      | "(?:[^"\\$`]|\\[\s\S])*+"
    )++""",
    re.VERBOSE,
)
_PART = re.compile(
    r"""\\(?P<escaped>[\s\S]) | '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\[\s\S])*)" | (?P<plain>[^\\'"]+)""",
    re.VERBOSE,
)
_ESCAPED_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\\n])")
_SKIPPED = re.compile(r"(?:[ \t]|\\\n)++(?:\#[^\n]*+)?+|\#[^\n]*+")
_OPERATOR = re.compile(r"&&|\|\|?+(?!&)|;|\n")
_DUPLICATION = re.compile(r"[0-2]?>&[12-](?=[ \t\n;|&<>]|\Z)")
_REDIRECTION = re.compile(r"[0-9]?(?P<way>>>|>\|?+|<)(?![<>&|(])[ \t]*+")
_OTHER_REDIRECTION = re.compile(r"[0-9]*[<>]")


def _split(script: str) -> list[SimpleCommand] | None:
    """Every simple command of the script, or None if any part of it is not simple."""
    if _CONTROL.search(script):
        return None
    commands: list[SimpleCommand] = []
    argv: list[str] = []
    files: dict[Literal["<", ">", ">>"], list[str]] = {"<": [], ">": [], ">>": []}
    place, after = 0, ";"

    def end_command() -> bool:
        command = SimpleCommand(
            argv=tuple(argv),
            reads=tuple(files["<"]),
            writes=tuple(files[">"]),
            appends=tuple(files[">>"]),
        )
        if _is_opaque_command(command):
            return False
        commands.append(command)
        argv.clear()
        for names in files.values():
            names.clear()
        return True

    while place < len(script):
        if found := _SKIPPED.match(script, place):
            place = found.end()
        elif found := _OPERATOR.match(script, place):
            place = found.end()
            is_empty = not (argv or files["<"] or files[">"])
            if is_empty and found[0] == "\n":
                continue
            if is_empty or not end_command():
                return None
            after = ";" if found[0] == "\n" else found[0]
        elif found := _DUPLICATION.match(script, place):
            place = found.end()
        elif found := _REDIRECTION.match(script, place):
            target = _WORD.match(script, found.end())
            if target is None or _may_be_descriptor(script, target):
                return None
            name = _value(target[0])
            if not name or name.startswith(("/dev/tcp", "/dev/udp")):  # bash connects to the network
                return None
            files["<" if found["way"] == "<" else ">"].append(name)
            if found["way"] == ">>":
                files[">>"].append(name)
            place = target.end()
        elif _OTHER_REDIRECTION.match(script, place):
            return None
        elif (found := _WORD.match(script, place)) and not _may_be_descriptor(script, found):
            argv.append(_value(found[0]))
            place = found.end()
        else:
            return None
    if argv or files["<"] or files[">"]:
        return commands if end_command() else None
    return commands if after == ";" else None


def _may_be_descriptor(script: str, word: re.Match[str]) -> bool:
    """Whether a redirection follows a number directly, in a spelling that `_REDIRECTION` does not know."""
    return script.startswith(("<", ">"), word.end()) and _value(word[0]).isdigit()


def _value(word: str) -> str:
    """What a word stands for once the quotes are removed."""
    return "".join(map(_part_value, _PART.finditer(word)))


def _part_value(part: re.Match[str]) -> str:
    if part["escaped"] is not None:
        return "" if part["escaped"] == "\n" else part["escaped"]
    if part["double"] is not None:
        return _ESCAPED_IN_DOUBLE_QUOTES.sub(lambda found: found[1].strip("\n"), part["double"])
    return part["single"] if part["single"] is not None else part["plain"]


def _is_opaque_command(command: SimpleCommand) -> bool:
    """Whether the first word does not name what runs: nothing, an assignment, a keyword, a wrapper."""
    name = command.argv[0] if command.argv else ""
    base = name.rpartition("/")[2]
    if not base or name[0] in "-+%" or "=" in name or base in _KEYWORDS | _BUILTINS | _WRAPPERS:
        return True
    if _VERSIONED_SHELL.fullmatch(base):
        return True
    if base == "printf" and len(command.argv) > 1 and command.argv[1].startswith("-"):
        return True  # `printf -v PATH ...` assigns a variable
    return not _EXECUTING_OPTIONS.get(base, frozenset()).isdisjoint(command.argv)
