"""Loads a policy by name or from a file."""

import os
import stat
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from holdfast.core.errors import InvalidPolicy
from holdfast.policy.analysis.examples import check_examples
from holdfast.policy.contract import Policy
from holdfast.policy.document import PolicyDocument
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.plain_yaml import line_and_column
from holdfast.policy.tiers import combine

PROJECT_POLICY = Path(".holdfast") / "policy.yaml"
"""The policy of a project, in its own folder. Agents cannot write there."""
MAX_BYTES = 16 << 20
_SIBLINGS = ("tool-annotations.json", "dynamic-lists.json")
"""Read from the folder of a compiled policy."""
AUTO = "auto"
"""Stands for the policy that fits the folder of a session."""
_NAMES = ("ask-always", "office", "project", "safe-analysis", "safe-edit", "scratch")
_FOLDER = Path(__file__).with_name("named")


def named_policies() -> tuple[str, ...]:
    """The names of the policies that come with Holdfast."""
    return _NAMES


def policy_for_folder(*, is_own: bool) -> str:
    """The policy that `auto` stands for: `scratch` in a folder that only the session uses, `project` in a folder of the user."""
    return "scratch" if is_own else "project"


def policy_text(name: str) -> str:
    """The YAML text of a named policy."""
    return _FOLDER.joinpath(f"{name}.yaml").read_text("utf-8")


def load_policy(
    reference: str,
    *,
    search: Sequence[Path] = (),
    annotations: Path | None = None,
    values: Mapping[str, str] | None = None,
    is_checked: bool = True,
) -> RulePolicy:
    """Load a policy by name, or from a file: YAML, or a compiled-policy.json with its tool-annotations.json.

    A name is looked up in the `search` folders first. tool-annotations.json and dynamic-lists.json are read from the folder
    of a compiled policy. `values` replaces `{NAME}` in folders. The rules' examples are checked if `is_checked`, but not those of
    the policies that come with Holdfast, which its tests check. Raises InvalidPolicy.
    """
    path = _find(reference, search)
    if path is None:
        if annotations is not None:
            raise InvalidPolicy("annotations need a policy file, not a named policy", source=reference)
        return _named(reference)
    policy = RulePolicy(_Loader(search, values or {}).parse(path, annotations))
    if is_checked:
        check_examples(policy)
    return policy


def policy_files(reference: str) -> tuple[Path, ...]:
    """The files that decide what a policy says, if it is one of the person's own files and not known by its name."""
    if not _is_path(reference):
        return ()
    path = Path(reference).expanduser().absolute()
    return (path, *(path.with_name(name) for name in _SIBLINGS)) if path.suffix == ".json" else (path,)


def parse_policy_text(text: str, *, source: str, search: Sequence[Path] = ()) -> PolicyDocument:
    """The document of a text that is not a file. Raises InvalidPolicy."""
    from holdfast.policy.parser import parse_policy

    return parse_policy(text, source=source, extended=_Loader(search, {}).extended)


def narrowed_by_project(policy: Policy, folder: Path) -> Policy:
    """The policy combined with the one of the project in this folder. A project's policy is untrusted and can only narrow."""
    path = folder / PROJECT_POLICY
    if not os.path.lexists(path):
        return policy
    # A link could show the first lines of any file of the person in an error.
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidPolicy("cannot be read: it leads outside the project", source=str(path))
    return combine(policy, load_policy(str(path)))


@cache
def _named(name: str) -> RulePolicy:
    return RulePolicy(parse_policy_text(policy_text(name), source=name))


class _Loader:
    """Parses a policy file, and the policies that it extends by their names."""

    def __init__(self, search: Sequence[Path], values: Mapping[str, str]) -> None:
        self._search = search
        self._values = values
        self._files: list[Path] = []

    def parse(self, path: Path, annotations: Path | None) -> PolicyDocument:
        """The document of a file. Raises InvalidPolicy."""
        # Imported here because YAML is slow to load, and most processes load one policy at most.
        from holdfast.policy.ironcurtain import parse_annotations, parse_compiled, parse_lists
        from holdfast.policy.parser import parse_policy

        text, source = _read(path), str(path)
        self._files.append(path)
        is_compiled = path.suffix == ".json"
        annotations = annotations or (_sibling(path, "tool-annotations.json") if is_compiled else None)
        tools = (
            parse_annotations(_read(annotations), source=str(annotations)) if annotations is not None else {}
        )
        if is_compiled:
            listed = _sibling(path, "dynamic-lists.json")
            lists = parse_lists(_read(listed), source=str(listed)) if listed is not None else {}
            return parse_compiled(text, source=source, tools=tools, lists=lists, values=self._values)
        document = parse_policy(text, source=source, values=self._values, extended=self.extended)
        return msgspec.structs.replace(document, tools=tools | document.tools)

    def extended(self, name: str) -> PolicyDocument:
        """The policy to extend, by name only: a project's policy must not reach into other folders."""
        if _is_path(name):
            raise InvalidPolicy("a policy is extended by its name, not by a file")
        path = _find(name, self._search)
        if path is None:
            return _named(name).document
        if path in self._files:
            raise InvalidPolicy("the policies extend each other in a circle")
        return self.parse(path, None)


def _sibling(path: Path, name: str) -> Path | None:
    sibling = path.with_name(name)
    return sibling if sibling.is_file() else None


def _find(reference: str, search: Sequence[Path]) -> Path | None:
    if _is_path(reference):
        return Path(reference).expanduser()
    for folder in search:
        candidate = folder / f"{reference}.yaml"
        if candidate.is_file():
            return candidate
    if reference in _NAMES:
        return None
    raise InvalidPolicy(
        f"there is no policy named {reference!r}; the named policies are {', '.join(_NAMES)}",
        hint="list the named policies with: holdfast policy show",
    )


def _is_path(reference: str) -> bool:
    return os.sep in reference or reference.endswith((".yaml", ".yml", ".json"))


def _read(path: Path) -> str:
    """The text of a regular file. A project may put anything in its place, even an endless pipe."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidPolicy("cannot be read: it is not a regular file", source=str(path))
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidPolicy(f"cannot be read: {error.strerror}", source=str(path)) from None
    if len(content) > MAX_BYTES:
        raise InvalidPolicy(f"has more than {MAX_BYTES:,} bytes", source=str(path))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = line_and_column(content, error.start)
        raise InvalidPolicy(
            "cannot be read: is not UTF-8", source=str(path), line=line, column=column
        ) from None
