"""Entry point: find the command, load only its module, run it, and turn errors into a message, a hint and an exit code."""

import errno
import gc
import sys
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from typing import Any

from holdfast.cli.command_list import CHAT_COMMANDS, COMMANDS, GROUPS, OTHER_NAMES
from holdfast.cli.exit_codes import ERROR, INTERRUPTED, NO_MODEL, OK, USAGE
from holdfast.cli.std_streams import discard_output, repair_std_streams
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator

_USAGE = """\
holdfast gives an AI agent real tools and keeps you in charge.

examples:
  holdfast demo                          see it work, without a key or network
  holdfast                               chat with an agent in this folder
  holdfast --scratch                     chat in an empty folder
  holdfast "why does test_totals fail?"  run one task; the answer goes to stdout
  git diff | holdfast "review this"      piped input becomes part of the task
  holdfast -c                            resume the last session of this folder
  holdfast -r NAME                       resume a session by id or name

session options:
  -m, --model PROVIDER:NAME   the model (or $HOLDFAST_MODEL, or config.toml)
  -p, --policy NAME|FILE      the policy that decides about each call
  -w, --workspace DIR         the folder the agent works in (default: this one)
      --scratch               work in an empty folder that only this session has
      --trust                 trust that folder without asking
  -c, --continue              resume the last session of this folder
  -r, --resume [SESSION]      resume a session by id, prefix or name
      --wait SECONDS          wait for a session that another process holds
  -n, --name NAME             name the new session
      --budget LIMITS         spending limits: usd=1,tokens=50k,time=5m
      --sandbox ENGINE        engine for code: python, system, wasi, auto, lisp
      --yes-to RULE           approve the calls that this rule asks about
      --add-dir DIR[:ro]      also let the agent use this folder
      --wait-for SECONDS      deny a call that is not answered in this time
      --store URL             the sessions of a store in PostgreSQL
      --no-escalations        deny every call that needs approval
      --json                  print outcome, usage, proposals and audit as JSON
      --plain, --no-plain     linear text for screen readers, or not
  -h, --help                  show this help
      --version               show the version
"""
_COMMANDS_INTRO = "holdfast COMMAND --help explains a command, with examples."
_MAX_ERROR_CHARACTERS = 20_000
_SIMILARITY_CUTOFF = 0.75
_GARBAGE_THRESHOLDS = (100_000, 10, 10)
"""New objects between two garbage collections. Python's default of 700 would look through what stays again and again."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    gc.disable()  # until the command is loaded: nearly all that loading creates stays
    repair_std_streams()
    try:
        try:
            return _dispatch(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()  # here, where a failure can still be reported
    except KeyboardInterrupt:  # before the command started: imports take a moment
        Console().say("stopped")
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()  # the reader closed the pipe
        return OK
    except OSError as error:
        discard_output()
        Console().say(f"holdfast: {error}", "bad", folds=True)
        too_many = error.errno in (errno.EMFILE, errno.ENFILE)
        Console().say(
            "hint: raise the limit on open files and try again: ulimit -n 1024"
            if too_many
            else "hint: the operating system refused it; holdfast doctor checks disk space and permissions"
        )
        return ERROR


def _dispatch(words: list[str]) -> int:
    if unreadable := next((word for word in words if not _is_text(word)), None):
        Console().say(f"holdfast: {unreadable!r} is not valid UTF-8", "bad")
        Console().say("hint: rename the file or the session to a UTF-8 name")
        return USAGE
    if words and words[0] in COMMANDS:
        return _run_command(words[0], words[1:])
    if words and words[0] == "help" and len(words) > 1:
        if words[1] in COMMANDS:
            return _run_command(words[1], [*words[2:], "--help"])
        return _unknown_command(words[1], f"holdfast help {_closest_command(words[1:2]) or ''}".rstrip())
    if words and words[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        return OK
    if words and words[0] == "--version":
        from holdfast import __version__

        print(f"holdfast {__version__}")
        return OK
    if len(words) == 1 and words[0] in CHAT_COMMANDS:
        return _unknown_command(
            words[0], f"in a chat: /{words[0]}; if it is a task for the agent: holdfast -- {words[0]}"
        )
    if meant := _closest_command(words):
        return _unknown_command(
            words[0], f"holdfast {meant}; if it is a task for the agent: holdfast -- {words[0]}"
        )
    return _run_command("session", words)


def _unknown_command(word: str, instead: str) -> int:
    Console().say(f"holdfast: there is no command {word!r}", "bad")
    Console().say(f"hint: {instead}")
    return USAGE


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _help() -> str:
    width = max(map(len, COMMANDS))
    parts = [_USAGE, _COMMANDS_INTRO]
    for heading, commands in GROUPS.items():
        parts.append(f"\n{heading}:")
        parts += [f"  {name:<{width}}  {what}" for name, what in commands.items()]
    return "\n".join(parts) + "\n"


def _closest_command(words: list[str]) -> str | None:
    """The command that was probably meant. A single word, alone or before an option or a subcommand, is rarely a whole task."""
    if not words or not words[0].replace("-", "").isalpha():
        return None
    from difflib import get_close_matches

    known = OTHER_NAMES.get(words[0])
    for near in [known] if known else get_close_matches(words[0], COMMANDS, n=1, cutoff=_SIMILARITY_CUTOFF):
        if len(words) == 1 or words[1].startswith("-") or _is_subcommand(near, words[1]):
            return near
    return None


def _is_subcommand(command: str, word: str) -> bool:
    from holdfast.cli.help_pages import load_command, subcommands

    return word in subcommands(load_command(command).parser)


def _run_command(name: str, words: list[str]) -> int:
    from holdfast.cli.help_pages import load_command

    command = load_command(name)
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    gc.enable()
    # Commands that ask questions or run a session show their own progress, and leave this out.
    progress: str = getattr(command.module, "PROGRESS", "")
    return _run_with_error_handling(command.module.run(command.parser.parse_args(words)), progress)


def _run_with_error_handling(work: Coroutine[Any, Any, int], progress: str) -> int:
    import asyncio  # here, because help and version do not need it

    from holdfast.cli.log_file import log_to_file
    from holdfast.core.errors import HoldfastError, InvalidInput, ModelMissing

    console = Console()
    with log_to_file() as log:
        try:
            with ProgressIndicator(lambda: progress) if progress else nullcontext():
                return asyncio.run(work)
        except (KeyboardInterrupt, asyncio.CancelledError):
            console.say("stopped")
            return INTERRUPTED
        except HoldfastError as error:
            console.say(f"holdfast: {str(error)[:_MAX_ERROR_CHARACTERS]} ({error.code})", "bad", folds=True)
            console.say(f"hint: {error.hint or f'holdfast explain {error.code}'}", folds=True)
            if isinstance(error, ModelMissing):
                return NO_MODEL
            return USAGE if isinstance(error, InvalidInput) else ERROR
        except OSError:
            raise  # caused by the system, so not an internal error
        except Exception as error:
            log.exception("a command failed with an internal error")
            console.say(f"holdfast: internal error: {error!r} (internal)", "bad", folds=True)
            console.say(f"hint: please report it; the traceback is in {_log_path()}", folds=True)
            return ERROR


def _log_path() -> str:
    from holdfast.store import Home

    return str(Home.default().log)
