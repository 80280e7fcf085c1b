"""The hosts of package registries come from the person's configuration, never from a project's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.commands.network.registries import PackageRegistries, find_registries


class Machine:
    """A home, a system folder and a workspace, with programs that only have to exist."""

    def __init__(self, folder: Path) -> None:
        self.home, self.system, self.workspace = folder / "home", folder / "system", folder / "workspace"
        self.programs = folder / "bin"
        for each in (self.home, self.system, self.workspace, self.programs):
            each.mkdir()
        self.environment = {"PATH": str(self.programs)}

    def install(self, *names: str) -> None:
        for name in names:
            (self.programs / name).write_text("#!/bin/sh\nexit 1\n")
            (self.programs / name).chmod(0o755)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def found(self) -> PackageRegistries:
        return find_registries(self.environment, home=self.home, workspace=self.workspace, system=self.system)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_configuration_each_installed_manager_has_its_default(machine: Machine) -> None:
    assert machine.found().hosts == ()
    machine.install("pip", "npm", "cargo", "go", "yarn", "uv", "gem", "mvn")
    assert machine.found().hosts == (
        "pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com", "index.crates.io",
        "static.crates.io", "crates.io", "proxy.golang.org", "sum.golang.org", "rubygems.org", "index.rubygems.org",
        "repo.maven.apache.org",
    )  # fmt: skip
    assert machine.found().configured == (), "a public registry is not in a private network"


def test_the_configuration_of_the_person_replaces_the_default(machine: Machine) -> None:
    machine.install("pip", "npm", "cargo", "go", "yarn", "uv", "gem", "mvn")
    machine.environment["NPM_TOKEN"] = "t"
    machine.write(
        machine.system / "etc/pip.conf",
        "[global]\nindex-url = https://u:p@pip.corp:8443/simple\nextra-index-url =\n  http://more1.corp\n  http://more2.corp\n",
    )
    machine.write(
        machine.home / ".config/uv/uv.toml",
        '[[index]]\nname = "a"\nurl = "https://uv.corp/simple"\ndefault = true\n[[index]]\nurl = "https://uv-more.corp"\n',
    )
    machine.write(
        machine.home / ".npmrc",
        "registry=https://npm.corp/\n@team:registry = https://team.corp:4873/\n//npm.corp/:_authToken=${NPM_TOKEN}\n",
    )
    machine.write(machine.home / ".yarnrc.yml", 'npmRegistryServer: "https://yarn.corp"\n')
    machine.write(
        machine.home / ".cargo/config.toml",
        '[source.crates-io]\nreplace-with = "corp"\n[source.corp]\nregistry = "sparse+https://cargo.corp/index/"\n[registries.other]\nindex = "https://other.corp/git"\n',
    )
    machine.environment["GOPROXY"] = "https://go.corp|https://go2.corp,direct"
    machine.environment["GOSUMDB"] = "off"
    machine.write(machine.home / ".gemrc", "---\n:sources:\n- https://gems.corp/\n")
    machine.write(
        machine.home / ".m2/settings.xml",
        "<mirror><url>https://maven.corp/m2</url><mirrorOf>*</mirrorOf></mirror>",
    )
    found = machine.found()
    assert found.hosts == (
        "pip.corp:8443", "more1.corp", "more2.corp", "uv.corp", "uv-more.corp", "team.corp:4873", "npm.corp", "yarn.corp",
        "cargo.corp", "other.corp", "go.corp", "go2.corp", "gems.corp", "maven.corp",
    )  # fmt: skip
    assert found.endpoints == (("pip.corp", 8443), ("team.corp", 4873))
    assert found.configured[:3] == (("pip.corp", 8443), ("more1.corp", 80), ("more2.corp", 80))
    assert {host for host, _ in found.configured} == {each.partition(":")[0] for each in found.hosts}


def test_variables_of_the_person_count(machine: Machine) -> None:
    machine.install("pip", "npm", "uv")
    machine.environment |= {
        "PIP_INDEX_URL": "https://a.corp/simple", "PIP_EXTRA_INDEX_URL": "https://b.corp https://c.corp",
        "UV_INDEX": "name=https://d.corp/simple", "NPM_CONFIG_REGISTRY": "https://e.corp",
    }  # fmt: skip
    assert machine.found().hosts == (
        "a.corp", "b.corp", "c.corp", "pypi.org", "files.pythonhosted.org", "d.corp", "e.corp",
    )  # fmt: skip


def test_a_project_does_not_widen_the_group(machine: Machine) -> None:
    machine.install("pip", "npm", "cargo", "uv", "yarn")
    before = machine.found()
    for name, text in (
        (".npmrc", "registry=https://evil.example/\n"),
        ("pip.conf", "[global]\nindex-url = https://evil.example/\n"),
        (".cargo/config.toml", '[registries.x]\nindex = "https://evil.example"\n'),
        ("uv.toml", 'index-url = "https://evil.example"\n'),
        (".yarnrc.yml", "npmRegistryServer: https://evil.example\n"),
    ):
        machine.write(machine.workspace / name, text)
    assert machine.found() == before
    machine.environment["PIP_CONFIG_FILE"] = str(machine.workspace / "pip.conf")
    (machine.home / ".npmrc").symlink_to(machine.workspace / ".npmrc")
    assert machine.found() == before
    machine.home = machine.workspace
    assert machine.found() == before


@pytest.mark.parametrize(
    "text",
    [
        "registry=file:///etc\n",
        "registry=javascript:x\n",
        "registry=https://\n",
        "registry=https://a b/\n",
        "registry=https://x:99999/\n",
        "\0\xff=\n",
        "registry",
    ],
)
def test_nonsense_names_no_host(machine: Machine, text: str) -> None:
    machine.install("npm", "cargo", "pip")
    machine.write(machine.home / ".npmrc", text)
    machine.write(machine.home / ".cargo/config.toml", 'source = 3\nregistries = ["x"]\n')
    machine.write(machine.home / ".pip/pip.conf", "no section\n")
    assert set(machine.found().hosts) <= {
        "pypi.org", "files.pythonhosted.org", "index.crates.io", "static.crates.io", "crates.io", "registry.npmjs.org",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("program", "file", "text", "question"),
    [
        (
            "pip",
            ".config/pip/pip.conf",
            "[global]\nindex-url = https://pip.corp/simple\nextra-index-url =\n  https://one.corp/simple\n  https://two.corp\n",
            ("config", "list"),
        ),
        ("npm", ".npmrc", "registry = https://npm.corp/all/\n", ("config", "get", "registry")),
        (
            "go",
            ".config/go/env",
            "GOPROXY=https://go.corp,https://more.corp|direct\nGOSUMDB=off\n",
            ("env", "GOPROXY"),
        ),
    ],
)
def test_the_program_itself_names_the_hosts_that_its_file_names(
    machine: Machine, program: str, file: str, text: str, question: tuple[str, ...]
) -> None:
    installed = shutil.which(program)
    if installed is None:
        pytest.skip(f"{program} is not installed")
    machine.write(machine.home / file, text)
    environment = {"HOME": str(machine.home), "PATH": os.environ["PATH"]}
    words = [installed, *question]
    asked = subprocess.run(
        words, env=environment, cwd=machine.workspace, capture_output=True, text=True, check=True
    )
    named = set(re.findall(r"https?://([^/\s'\"\\,|]+)", asked.stdout))
    assert named == set(re.findall(r"https?://([^/\s,|]+)", text)), "the program reads this file"
    machine.install(program)
    assert named <= set(machine.found().hosts)
