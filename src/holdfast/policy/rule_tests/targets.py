"""Tests of paths, hosts and names."""

from holdfast.core import Location, NameTarget, PathTarget, Target, UrlTarget
from holdfast.core.globs import any_glob, casefold_path, compile_glob
from holdfast.policy.contract import Request
from holdfast.policy.document import HostTest, NameTest, PathTest
from holdfast.policy.rule_tests.contract import TargetTest
from holdfast.policy.targets import includes_subtree
from holdfast.policy.urls import GROUP_PREFIX, match_host


class PathMatcher(TargetTest):
    """`paths`, `within`, `inside`, `outside` and `executes`."""

    mismatch = "the path does not match its paths"

    def __init__(self, test: PathTest, *, for_deny: bool) -> None:
        self.test = test
        self.roles = frozenset(test.roles)
        self.globs = [compile_glob(pattern, for_deny) for pattern in test.globs]
        self._matches_any = any_glob(self.globs)
        self.folders = tuple(folder.rstrip("/") for folder in test.folders)
        self.looks_at_names = bool(self.globs or self.folders)
        """Whether it matters where a path inside or outside the workspace leads."""
        self._reaches_into_folders = for_deny and self.looks_at_names

    def matches(self, target: Target, request: Request) -> bool:
        if not isinstance(target, PathTarget):
            return False
        location, real = target.location, target.location.real
        if location.inside is None:
            if self.test.outside:
                return True
        elif self.test.inside or self._matches_any(location.inside):
            return True
        return any(real == folder or real.startswith(folder + "/") for folder in self.folders)

    def matches_part(self, target: Target, request: Request) -> bool:
        if self.matches(target, request):
            return True
        if not self._reaches_into_folders or not isinstance(target, PathTarget):
            return False
        return includes_subtree(target, request.targets) and self._contains_match(target.location)

    def index_keys(self) -> frozenset[str] | None:
        if self.test.inside or self.test.outside:
            return None
        prefixes = {casefold_path(glob.literal_prefix) for glob in self.globs} | set(self.folders)
        return None if "" in prefixes else frozenset(prefixes)

    def _contains_match(self, location: Location) -> bool:
        """Whether a folder contains a place that the test names."""
        above = location.real.rstrip("/") + "/"
        if any(folder.startswith(above) for folder in self.folders):
            return True
        if location.inside is None:
            return False
        path = "" if location.inside == "." else casefold_path(location.inside) + "/"
        return any(
            glob.literal_prefix and (glob.literal_prefix + "/").startswith(path) for glob in self.globs
        )


class HostMatcher(TargetTest):
    """`hosts`."""

    mismatch = "the host does not match its hosts"

    def __init__(self, test: HostTest, *, for_deny: bool) -> None:
        self.roles = frozenset(test.roles)
        self._patterns = test.patterns
        self._for_deny = for_deny

    def matches(self, target: Target, request: Request) -> bool:
        if not isinstance(target, UrlTarget):
            return False
        groups = request.facts.host_groups.get(target.host, ())
        return any(match_host(one, target, for_deny=self._for_deny, groups=groups) for one in self._patterns)

    def index_keys(self) -> frozenset[str] | None:
        names = {pattern.partition("/")[0] for pattern in self._patterns}
        if any(name == "*" or ":" in name or name.startswith(GROUP_PREFIX) for name in names):
            return None
        return frozenset(name.removeprefix("*.") for name in names)


class NameMatcher(TargetTest):
    """`names` of one role."""

    mismatch = "a name does not match its names"

    def __init__(self, test: NameTest, *, for_deny: bool) -> None:
        self.roles = frozenset(test.roles)
        self._names = test.names
        self._for_deny = for_deny

    def matches(self, target: Target, request: Request) -> bool:
        if not isinstance(target, NameTarget):
            return False
        value = casefold_path(target.value) if self._for_deny else target.value
        return any(_name_passes(casefold_path(one) if self._for_deny else one, value) for one in self._names)

    def index_keys(self) -> frozenset[str] | None:
        if any(name.startswith("*") for name in self._names):
            return None
        return frozenset(casefold_path(name) for name in self._names)


def _name_passes(name: str, value: str) -> bool:
    if name == "*":
        return bool(value)
    if name.startswith("*@"):
        return value.count("@") == 1 and value.lower().endswith(name[1:].lower()) and value[0] != "@"
    return name == value
