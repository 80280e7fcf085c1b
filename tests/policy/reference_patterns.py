"""What the patterns of a policy mean, as definitions: slow, and checked by reading."""

import ipaddress
import re
import unicodedata
from typing import Any
from urllib.parse import unquote

from holdfast.core import CommandTarget, PathTarget, Target, UrlTarget
from holdfast.policy import Request
from holdfast.policy.document import ArgumentTest, CommandTest, PathTest

Words = tuple[tuple[str, ...], ...]

LOCAL = (
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "localdomain",
)
REBINDING = ("nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "traefik.me")


def low(text: str) -> str:
    shown = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", shown.casefold())


def literal(pattern: str) -> str:
    names = parts(pattern)
    plain = [*(("*" in one or "?" in one or "[" in one) for one in names), True].index(True)
    return low("/".join(names[:plain]))


def glob(pattern: str, path: str, for_deny: bool) -> bool:
    wanted, given = (low(pattern), low(path)) if for_deny else (pattern, path)
    return segments(parts(wanted), parts(given), for_deny)


def parts(text: str) -> list[str]:
    return [one for one in text.split("/") if one != "."]


def segments(pattern: list[str], path: list[str], for_deny: bool) -> bool:
    """The definition, by recursion."""
    if not pattern:
        return not path or for_deny
    if pattern == ["**"]:
        return for_deny or (bool(path) and not any(one.startswith(".") for one in path))
    if pattern[0] == "**":
        if segments(pattern[1:], path, for_deny):
            return True
        return bool(path) and (for_deny or path[0][0] != ".") and segments(pattern, path[1:], for_deny)
    if not path or (not for_deny and path[0][0] == "." and pattern[0][0] != "."):
        return False
    return letters(pattern[0], path[0]) and segments(pattern[1:], path[1:], for_deny)


def letters(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return letters(pattern[1:], text) or (bool(text) and letters(pattern, text[1:]))
    if pattern[0] == "[":
        body, rest = pattern[1:].split("]", 1)
        is_in = bool(text) and (text[0] not in body[1:] if body[0] == "!" else text[0] in body)
        return is_in and letters(rest, text[1:])
    return bool(text) and pattern[0] in ("?", text[0]) and letters(pattern[1:], text[1:])


def host(pattern: str, url: UrlTarget, for_deny: bool = False, groups: tuple[str, ...] = ()) -> bool:
    if url.problem is not None:
        return False
    if pattern.startswith("group:"):
        return pattern[6:] in groups
    if pattern == "*":
        if url.role == "fetch-url" and url.scheme not in ("http", "https"):
            return False
        try:
            return ipaddress.ip_address(url.host).is_global
        except ValueError:
            return "." in url.host and not any(
                ("." + url.host).endswith("." + one) for one in LOCAL + REBINDING
            )
    name, slash, path = pattern.partition("/")
    if slash and not any((one + "/").startswith("/" + path + "/") for one in spellings(url, for_deny)):
        return False
    if name.endswith(":443"):
        name = name.removesuffix(":443")
        if (url.port or (443 if url.scheme == "https" else 0)) != 443:
            return False
    return url.host == name or (name[:2] == "*." and ("." + url.host).endswith(name[1:]))


def spellings(url: UrlTarget, for_deny: bool) -> list[str]:
    if for_deny:
        return [low(url.path), low(unquote(url.path))]
    return [] if "%2f" in url.path else [url.path]


def name(pattern: str, value: str, for_deny: bool) -> bool:
    if pattern == "*":
        return True
    if pattern.startswith("*@"):
        before, at, after = low(value).partition("@")
        return bool(before) and at + after == low(pattern[1:])
    return pattern == value or (for_deny and low(pattern) == low(value))


def argument(test: ArgumentTest, request: Request, for_deny: bool) -> tuple[bool, bool]:
    """Whether one value passes, and whether all do."""
    found: list[Any] = [request.call.arguments]
    for step in test.argument.replace("[]", ".[]").split("."):
        if step == "[]":
            found = [inner for one in found for inner in (one if isinstance(one, list) else [one])] or [None]
        else:
            found = [one.get(step) if isinstance(one, dict) else None for one in found]
            if step == "size" and request.call.operation == "fs.edit":
                found = [10 if one is None else one for one in found]  # as the schema of that tool has it
    passed = [value(test, one, for_deny) for one in found]
    return any(passed), all(passed)


def value(test: ArgumentTest, given: Any, for_deny: bool) -> bool:
    is_text, is_number = isinstance(given, str), type(given) in (int, float)
    is_other = for_deny and given is not None
    results: list[bool] = []
    if test.one_of:
        results.append(
            any(
                (type(one) is type(given) and one == given)
                or (for_deny and is_text and isinstance(one, str) and low(one) == low(given))
                for one in test.one_of
            )
        )
    if test.at_most is not None:
        results.append(given <= test.at_most if is_number else is_other)
    if test.at_least is not None:
        results.append(given >= test.at_least if is_number else is_other)
    if test.longest is not None:
        results.append(len(given) <= test.longest if isinstance(given, str | list | dict) else is_other)
    if test.shortest is not None:
        results.append(len(given) >= test.shortest if isinstance(given, str | list | dict) else is_other)
    if test.prefixes:
        hit = is_text and any(
            given.startswith(one) or (for_deny and low(given).startswith(low(one))) for one in test.prefixes
        )
        results.append(hit if is_text else is_other)
    if test.patterns:
        hit = is_text and any(
            re.search(one, given, re.IGNORECASE) if for_deny else re.fullmatch(one, given)
            for one in test.patterns
        )
        results.append(hit if is_text else is_other)
    if test.globs:
        is_path = is_text and given not in ("", "/x", "../x")
        results.append(any(glob(one, given, for_deny) for one in test.globs) if is_path else is_other)
    return all(results)


def command(test: CommandTest, target: CommandTarget, for_deny: bool) -> tuple[bool, bool]:
    """Whether part of a command matches, and whether the whole does."""
    if not for_deny:
        fits = not target.is_opaque and not target.sets_environment
        fits = fits and any(exactly(prefix, target.words) for prefix in test.prefixes)
        return fits, fits
    words = [low(word) for word in target.words]
    starts = range(len(words)) if target.is_opaque else range(1)
    fits = any(loosely(prefix, words, start) for prefix in test.prefixes for start in starts)
    return fits, fits and not target.is_opaque


def exactly(prefix: Words, words: tuple[str, ...]) -> bool:
    program = words[0].removeprefix("/usr/bin/")
    return program in prefix[0] and all(
        len(words) > place and words[place] in wanted for place, wanted in enumerate(prefix) if place
    )


def loosely(prefix: Words, words: list[str], start: int) -> bool:
    if start >= len(words) or words[start].split("/")[-1] not in [
        low(one).split("/")[-1] for one in prefix[0]
    ]:
        return False
    if len(prefix) == 1:
        return True
    wanted, rest = prefix[1], prefix[2:]
    if wanted[0].startswith("-"):
        return set(wanted) <= set(words) and not rest
    skipped = words[start + 1 :]
    while skipped and skipped[0] not in wanted and skipped[0].startswith("-"):
        skipped = skipped[1:]
        if skipped and skipped[0] not in wanted and not skipped[0].startswith("-"):
            skipped = skipped[1:]
    if not skipped or skipped[0] not in wanted:
        return False
    return not rest or set(rest[0]) <= set(words)


def op(pattern: str, operation: str) -> bool:
    group, _, verb = operation.partition(".")
    return pattern in {"*", operation} or (bool(verb) and pattern in {f"{group}.*", f"*.{verb}"})


def beneath(test: object, target: Target | None, targets: tuple[Target, ...]) -> bool:
    """Whether a call takes with a folder what a test names in it."""
    if not isinstance(target, PathTarget) or not isinstance(test, PathTest):
        return False
    inside, above = target.location.inside, target.location.real.rstrip("/") + "/"
    hit = any((folder + "/").startswith(above) for folder in test.folders)
    if inside is not None:
        over = "" if inside == "." else low(inside) + "/"
        hit = hit or any(literal(p) and (literal(p) + "/").startswith(over) for p in test.globs)
    return hit and includes_subtree(target, targets)


def includes_subtree(target: Target, targets: tuple[Target, ...]) -> bool:
    if target.role not in ("read-path", "write-path"):
        return target.role == "delete-path"
    read, written = ([t.argument for t in targets if t.role == role] for role in ("read-path", "write-path"))
    return any(one != other for one in read for other in written)
