"""The host group `package-registries`: where the package managers of this machine are configured to look for packages.

Read from the person's and the system's configuration and from the environment, as pip, uv, npm, yarn, cargo, go, bundler and
Maven read them. Nothing of a workspace is read, because a project must not widen what its programs may reach.
"""

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.core import Json, Value, canonical_host

PACKAGE_REGISTRIES = "package-registries"
_MAX_FILE_BYTES = 1 << 20
_DEFAULT_PORTS = {"http": 80, "https": 443}
_XML_URL = re.compile(r"<url>\s*([^<\s]+)\s*</url>")


class PackageRegistries(Value):
    """The hosts of the group."""

    hosts: tuple[str, ...]
    """Host patterns in canonical form: `host`, or `host:port` where the port is not the usual one."""
    endpoints: tuple[tuple[str, int], ...] = ()
    """The hosts with an unusual port, for `CommandProxy(named_endpoints=...)`."""
    configured: tuple[tuple[str, int], ...] = ()
    """Hosts and ports that a configuration names, without the public defaults. Only these may lie in a private network."""


def find_registries(
    environment: Mapping[str, str], *, home: Path, workspace: Path, system: Path = Path("/")
) -> PackageRegistries:
    """Find the registries. Takes a few milliseconds; the caller keeps the result for a session."""
    machine = _Machine(environment, home=home, workspace=workspace, system=system)
    found: dict[str, None] = {}
    endpoints: dict[tuple[str, int], None] = {}
    configured: dict[tuple[str, int], None] = {}
    for programs, urls in _MANAGERS:
        if not any(shutil.which(program, path=environment.get("PATH", "")) for program in programs):
            continue
        for url in urls(machine):
            with contextlib.suppress(ValueError):
                parts = urlsplit(machine.expand(url))
                host = canonical_host(parts.hostname or "")
                if host is None or parts.scheme not in _DEFAULT_PORTS:
                    continue
                if host not in _PUBLIC_HOSTS:
                    configured[host, parts.port or _DEFAULT_PORTS[parts.scheme]] = None
                if parts.port in (None, 80, 443):
                    found[host] = None
                else:
                    found[f"[{host}]:{parts.port}" if ":" in host else f"{host}:{parts.port}"] = None
                    endpoints[host, parts.port or 0] = None
    return PackageRegistries(hosts=tuple(found), endpoints=tuple(endpoints), configured=tuple(configured))


class _Machine:
    """The configuration of this machine, without what lies in the workspace."""

    def __init__(self, environment: Mapping[str, str], *, home: Path, workspace: Path, system: Path) -> None:
        self.environment = environment
        self.home = home
        self.system = system
        self._workspace = workspace.resolve()

    def variable(self, *names: str) -> str:
        return next((self.environment[name] for name in names if self.environment.get(name)), "")

    def user_config(self) -> Path:
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    def text(self, path: Path) -> str:
        """The content of a configuration file; empty if it is missing, or lies in the workspace."""
        try:
            if path.resolve().is_relative_to(self._workspace):
                return ""
            with path.open("rb") as file:
                return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def toml(self, path: Path) -> dict[str, Json]:
        text = self.text(path)
        if not text:
            return {}
        import tomllib  # here, because most machines have no such file

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return {}

    def expand(self, url: str) -> str:
        """The URL with `${NAME}` replaced, as npm and uv write secrets."""
        return re.sub(r"\$\{(\w+)\}", lambda found: self.environment.get(found[1], ""), url)


def _pip(machine: _Machine) -> Iterator[str]:
    index = machine.variable("PIP_INDEX_URL")
    more = machine.variable("PIP_EXTRA_INDEX_URL")
    places = [
        machine.system / "etc/xdg/pip/pip.conf",
        machine.system / "etc/pip.conf",
        machine.home / ".pip/pip.conf",
        machine.user_config() / "pip/pip.conf",
        Path(machine.environment.get("PIP_CONFIG_FILE") or "/dev/null"),
    ]
    for text in filter(None, map(machine.text, places)):
        import configparser  # here, because most machines have no such file

        parser = configparser.RawConfigParser(strict=False)
        with contextlib.suppress(configparser.Error):
            parser.read_string(text)
        for section in ("global", "install", "download"):
            index = index or parser.get(section, "index-url", fallback="")
            more += " " + parser.get(section, "extra-index-url", fallback="")
    yield from (index, *_PYPI) if not index or "pypi.org" in index else (index,)
    yield from more.split()


def _uv(machine: _Machine) -> Iterator[str]:
    default = machine.variable("UV_DEFAULT_INDEX", "UV_INDEX_URL")
    more = [machine.variable("UV_INDEX"), machine.variable("UV_EXTRA_INDEX_URL")]
    for place in (machine.system / "etc/uv/uv.toml", machine.user_config() / "uv/uv.toml"):
        settings = machine.toml(place)
        default = default or _string(settings.get("index-url"))
        more += _strings(settings.get("extra-index-url"))
        for index in _tables(settings.get("index")):
            if index.get("default") is True:
                default = _string(index.get("url"))
            else:
                more.append(_string(index.get("url")))
    yield from (default,) if default else _PYPI
    # UV_INDEX takes `name=url`.
    yield from (re.sub(r"^\w[\w-]*=", "", url) for entry in more for url in entry.split())


def _npm(machine: _Machine) -> Iterator[str]:
    registry = machine.variable("npm_config_registry", "NPM_CONFIG_REGISTRY")
    places = [
        Path(machine.variable("npm_config_userconfig", "NPM_CONFIG_USERCONFIG") or machine.home / ".npmrc"),
        Path(
            machine.variable("npm_config_globalconfig", "NPM_CONFIG_GLOBALCONFIG")
            or machine.system / "etc/npmrc"
        ),
        machine.system / "usr/etc/npmrc",
        machine.system / "usr/local/etc/npmrc",
    ]
    for place in places:
        for line in machine.text(place).splitlines():
            name, _, value = (part.strip().strip("\"'") for part in line.partition("="))
            if name == "registry":
                registry = registry or value
            elif name.startswith("@") and name.endswith(":registry"):
                yield value
    yield registry or _NPM


def _yarn(machine: _Machine) -> Iterator[str]:
    found = re.search(
        r"^npmRegistryServer:\s*[\"']?([^\s\"']+)", machine.text(machine.home / ".yarnrc.yml"), re.MULTILINE
    )
    yield machine.variable("YARN_NPM_REGISTRY_SERVER") or (found[1] if found else _YARN)


def _cargo(machine: _Machine) -> Iterator[str]:
    folder = Path(machine.environment.get("CARGO_HOME") or machine.home / ".cargo")
    settings = machine.toml(folder / "config.toml") or machine.toml(folder / "config")
    sources = _table(settings.get("source"))
    replacement = _string(_table(sources.get("crates-io")).get("replace-with"))
    if not replacement:
        yield from _CRATES
    for table in (*sources.values(), *_table(settings.get("registries")).values()):
        for name in ("registry", "index"):
            yield _string(_table(table).get(name)).removeprefix("sparse+").removeprefix("registry+")


def _go(machine: _Machine) -> Iterator[str]:
    settings = dict(
        line.partition("=")[::2]
        for line in machine.text(machine.user_config() / "go/env").splitlines()
        if "=" in line
    )
    proxies = machine.variable("GOPROXY") or settings.get("GOPROXY", "") or f"{_GO_PROXY},direct"
    yield from re.split("[,|]", proxies)
    checksums = machine.variable("GOSUMDB") or settings.get("GOSUMDB", "") or _GO_CHECKSUMS
    if checksums != "off":
        words = checksums.split()
        yield words[1] if len(words) > 1 else f"https://{words[0].partition('+')[0]}"


def _gem(machine: _Machine) -> Iterator[str]:
    sources = re.findall(r"^\s*-\s*(https?://\S+)", machine.text(machine.home / ".gemrc"), re.MULTILINE)
    yield from sources or _GEMS


def _maven(machine: _Machine) -> Iterator[str]:
    text = machine.text(machine.home / ".m2/settings.xml")
    yield from _XML_URL.findall(text)
    if not re.search(r"<mirrorOf>\s*(\*|central)", text):
        yield _MAVEN


_PYPI = ("https://pypi.org/", "https://files.pythonhosted.org/")
_NPM = "https://registry.npmjs.org/"
_YARN = "https://registry.yarnpkg.com/"
_CRATES = ("https://index.crates.io/", "https://static.crates.io/", "https://crates.io/")
_GO_PROXY, _GO_CHECKSUMS = "https://proxy.golang.org", "sum.golang.org"
_GEMS = ("https://rubygems.org/", "https://index.rubygems.org/")
_MAVEN = "https://repo.maven.apache.org/"
_PUBLIC_HOSTS = frozenset(
    urlsplit(url).hostname
    for url in (*_PYPI, _NPM, _YARN, *_CRATES, _GO_PROXY, f"https://{_GO_CHECKSUMS}", *_GEMS, _MAVEN)
)
"""The defaults. A public registry at a private address is a sign of a forged answer to a lookup."""
_MANAGERS: tuple[tuple[tuple[str, ...], Callable[[_Machine], Iterator[str]]], ...] = (
    (("pip", "pip3", "python3", "python"), _pip),
    (("uv",), _uv),
    (("npm", "pnpm"), _npm),
    (("yarn",), _yarn),
    (("cargo",), _cargo),
    (("go",), _go),
    (("gem", "bundle"), _gem),
    (("mvn", "gradle"), _maven),
)
"""By the programs whose presence says that a manager is installed: what it is configured to use."""


def _string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: Json) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _tables(value: Json) -> list[dict[str, Json]]:
    return [_table(each) for each in value] if isinstance(value, list) else []
