"""The configuration of a repository as programs in the sandbox see it: without secrets, and without what needs the person's keys.

Comments go too, because old URLs with tokens live on in them.
"""

import re

import msgspec

from holdfast.commands.git.config_text import ConfigEntry, parse_config, render_config

_DROPPED_SECTIONS = frozenset(("credential", "gpg", "include", "includeif", "sendemail", "imap", "url"))
"""Secrets and addresses of the person, programs that ask for them, and files that would be read uncleaned."""
_DROPPED_NAMES = frozenset(
    (
        ("commit", "gpgsign"), ("tag", "gpgsign"), ("push", "gpgsign"), ("user", "signingkey"),
        ("core", "askpass"), ("core", "fsmonitor"), ("core", "gitproxy"), ("core", "sshcommand"),
        ("http", "cookiefile"), ("http", "extraheader"), ("http", "proxy"), ("http", "sslcert"), ("http", "sslkey"),
        ("remote", "proxy"),
    )
)  # fmt: skip
_SECRET_NAME = re.compile(
    r"token|passw|^pass$|secret|apikey|auth(?!or)|cookie|extraheader|credential|private-?key"
)
_USER_INFO = re.compile(r"(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z0-9+.-]++)://(?P<user>[^/?#\s]*)@")
"""A server chooses the text, so the search begins once in each run of letters: from every letter it would take quadratic time."""


def clean_git_config(content: bytes) -> bytes:
    """The content of a `config` or `config.worktree` file for the sandbox."""
    entries = parse_config(content.decode("utf-8", "surrogateescape"))
    cleaned = [_without_user_info(entry) for entry in entries if not _is_dropped(entry)]
    return render_config(cleaned).encode("utf-8", "surrogateescape")


def without_user_info(text: str) -> str:
    """The text with user names and passwords of URLs removed. The user name of ssh stays: it is part of the address."""

    def clean(found: re.Match[str]) -> str:
        if "ssh" not in found["scheme"].lower():
            return f"{found['scheme']}://"
        return f"{found['scheme']}://{found['user'].partition(':')[0]}@"

    return _USER_INFO.sub(clean, text)


def _is_dropped(entry: ConfigEntry) -> bool:
    return (
        entry.section in _DROPPED_SECTIONS
        or (entry.section, entry.name) in _DROPPED_NAMES
        or _SECRET_NAME.search(entry.name) is not None
    )


def _without_user_info(entry: ConfigEntry) -> ConfigEntry:
    return msgspec.structs.replace(
        entry,
        value=None if entry.value is None else without_user_info(entry.value),
        subsection=None if entry.subsection is None else without_user_info(entry.subsection),
    )
