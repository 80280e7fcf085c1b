"""Completion for fish, with a description beside each word."""

from collections.abc import Iterator, Sequence

from holdfast.cli.completion.words import ArgumentSpec, CommandSpec, OptionSpec, flags_with_values

_HEAD = """\
# Fish completion for holdfast. Load it with: holdfast completion fish | source
# or save it as ~/.config/fish/completions/holdfast.fish
function __holdfast_parsed
    set -l parsed ''
    set -l before ''
    for word in (commandline -opc)[2..]
        if contains -- "$parsed|$before" %(valued)s
            set before ''
            continue
        end
        set before $word
        if contains -- "$parsed|$word" %(paths)s
            set parsed (string trim -- "$parsed $word")
        end
    end
    echo $parsed
end
function __holdfast_at
    test "$(__holdfast_parsed)" = "$argv[1]"
end
complete -c holdfast -f
"""


def fish_script(commands: Sequence[CommandSpec]) -> str:
    """The completion script for fish."""
    valued = [
        f"{command.path}|{flag}"
        for command in commands
        for o in flags_with_values(command)
        for flag in o.flags
    ]
    paths = [
        f"{command.path.rpartition(' ')[0]}|{command.path.rpartition(' ')[2]}"
        for command in commands
        if command.path
    ]
    lines = [_HEAD % {"valued": _listed(valued), "paths": _listed(paths)}]
    for command in commands:
        lines += [f"{line}\n" for line in _lines(command)]
    return "".join(lines)


def _lines(command: CommandSpec) -> Iterator[str]:
    here = f"complete -c holdfast -n '__holdfast_at \"{command.path}\"'"
    for word, what in command.words.items():
        yield f"{here} -a {word} -d {_quoted(what)}"
    if not command.words and (offered := _offer(command.argument)):
        yield f"{here} {offered}"
    for option in command.options:
        taken = _taken(option)
        yield f"{here} {_flags(option)} -d {_quoted(option.description)}{f' {taken}' if taken else ''}"


def _flags(option: OptionSpec) -> str:
    return " ".join(
        f"-l {flag.removeprefix('--')}" if flag.startswith("--") else f"-s {flag.removeprefix('-')}"
        for flag in option.flags
    )


def _taken(option: OptionSpec) -> str:
    if option.value.kind == "none":
        return ""
    is_path = option.value.kind in ("files", "folders")
    return f"{'-r' if is_path else '-x'} {_offer(option.value)}".rstrip()


def _offer(value: ArgumentSpec) -> str:
    match value.kind:
        case "words":
            return f"-a {_quoted(' '.join(value.words))}"
        case "sessions":
            return "-a '(holdfast completion sessions 2>/dev/null)'"
        case "files" | "folders":
            return "-F"
        case "none" | "any":
            return ""


def _listed(texts: Sequence[str]) -> str:
    return " ".join(_quoted(text) for text in texts)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
