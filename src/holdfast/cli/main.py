"""The entry: find the command, load only its module, run it, and turn errors into a line, a hint and an exit code."""

import sys
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from typing import Any

from holdfast.cli.command_list import COMMANDS, GROUPS
from holdfast.cli.exit_codes import ERROR, INTERRUPTED, NO_MODEL, OK, USAGE
from holdfast.cli.std_streams import discard_output, repair_std_streams
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator

_USAGE = """\
holdfast gives an AI agent real tools and keeps you in charge.

examples:
  holdfast demo                          see it work, without a key or network
  holdfast                               talk with an agent
  holdfast -w .                          let it work in this folder
  holdfast "why does test_totals fail?"  one task, the answer on stdout
  git diff | holdfast "review this"      what is piped in goes with the task
  holdfast -c                            go on with the last one of this folder
  holdfast -r NAME                       go on with a session by id or name

options of a session:
  -m, --model PROVIDER:NAME   which model (or $HOLDFAST_MODEL, or config.toml)
  -p, --policy NAME|FILE      what is allowed, denied, asked and staged
  -w, --workspace DIR         the project folder the agent works in
      --trust                 do not ask whether you trust that folder
  -c, --continue              the last session of this folder
  -r, --resume [SESSION]      a session by id, prefix or name
      --wait SECONDS          wait for a session that another process has
  -n, --name NAME             a name for the new session
      --budget LIMITS         what it may spend: usd=1,tokens=50k,time=5m
      --sandbox ENGINE        where its code runs: python, wasi, auto or lisp
      --yes-to RULE           say yes to what this rule asks about
      --no-escalations        whatever needs a person's yes is a no
      --json                  outcome, usage, proposals and audit as JSON
      --plain, --no-plain     linear text, for screen readers; or not
  -h, --help                  this text
      --version               the version
"""
_COMMANDS_INTRO = "holdfast COMMAND --help tells more of each command, with examples."
_SIMILARITY_CUTOFF = 0.75


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    repair_std_streams()
    try:
        try:
            return _dispatch(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()  # while somebody can still say what went wrong with it
    except KeyboardInterrupt:  # before the work began: loading takes a moment too
        Console().say("stopped")
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()  # whoever read has gone
        return OK
    except OSError as error:
        discard_output()
        Console().say(f"holdfast: {error}", "bad", folds=True)
        Console().say("hint: the system refused that; holdfast doctor looks at the disk and at what is whose")
        return ERROR


def _dispatch(words: list[str]) -> int:
    if unreadable := next((word for word in words if not _is_text(word)), None):
        Console().say(f"holdfast: {unreadable!r} is not text", "bad")
        Console().say("hint: its bytes are no UTF-8; give a file or a session a name that is")
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
    if meant := _closest_command(words):
        return _unknown_command(
            words[0], f"holdfast {meant}; or, if it is a task for the agent: holdfast -- {words[0]}"
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
    """The command that was probably meant: one word, alone or before an option or an action, is rarely a whole task."""
    if not words or not words[0].replace("-", "").isalpha():
        return None
    from difflib import get_close_matches

    for near in get_close_matches(words[0], COMMANDS, n=1, cutoff=_SIMILARITY_CUTOFF):
        if len(words) == 1 or words[1].startswith("-") or _is_action(near, words[1]):
            return near
    return None


def _is_action(command: str, word: str) -> bool:
    from holdfast.cli.help_pages import actions, load_command

    return word in actions(load_command(command).parser)


def _run_command(name: str, words: list[str]) -> int:
    from holdfast.cli.help_pages import load_command

    command = load_command(name)
    # A command that may take long and asks nothing says so; others show themselves what they do.
    working: str = getattr(command.module, "WORKING", "")
    return _run_with_error_handling(command.module.run(command.parser.parse_args(words)), working)


def _run_with_error_handling(work: Coroutine[Any, Any, int], working: str) -> int:
    import asyncio  # here: help and version need none of it

    from holdfast.cli.log_file import log_to_file
    from holdfast.core.errors import HoldfastError, InvalidInput, ModelMissing

    console = Console()
    with log_to_file() as log:
        try:
            with ProgressIndicator(lambda: working) if working else nullcontext():
                return asyncio.run(work)
        except (KeyboardInterrupt, asyncio.CancelledError):
            console.say("stopped")
            return INTERRUPTED
        except HoldfastError as error:
            console.say(f"holdfast: {error} ({error.code})", "bad", folds=True)
            console.say(f"hint: {error.hint or f'holdfast explain {error.code}'}", folds=True)
            if isinstance(error, ModelMissing):
                return NO_MODEL
            return USAGE if isinstance(error, InvalidInput) else ERROR
        except OSError:
            raise  # of the world, and no fault of ours
        except Exception as error:
            log.exception("a command ended by a fault of ours")
            console.say(f"holdfast: internal error: {error!r} (internal)", "bad", folds=True)
            console.say(f"hint: please report it; the trace is in {_log_path()}", folds=True)
            return ERROR


def _log_path() -> str:
    from holdfast.store import Home

    return str(Home.default().log)
