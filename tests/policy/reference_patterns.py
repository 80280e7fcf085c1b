"""What the patterns of a policy mean, as definitions: slow, and checked by reading."""

import ipaddress
import unicodedata
from urllib.parse import unquote

from holdfast.core import PathTarget, Target, UrlTarget
from holdfast.policy import Request
from holdfast.policy.document import ArgumentTest, PathTest

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


def host(pattern: str, url: UrlTarget, for_deny: bool = False) -> bool:
    if url.problem is not None:
        return False
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


def argument(test: ArgumentTest, request: Request) -> bool:
    given = request.call.arguments.get(test.argument)
    if given is None and request.call.operation == "fs.edit" and test.argument == "size":
        given = 10  # as the schema of that tool has it
    if test.at_most is not None:
        return type(given) is int and given <= test.at_most
    return any(type(one) is type(given) and one == given for one in test.one_of)


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
