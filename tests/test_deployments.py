"""The example deployments start what there is: every command and option in them exists, and a stop waits for the drain."""

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.cli.help_pages import load_command

DEPLOY = Path(__file__).parents[1] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS: list[Any] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def test_f52_no_set_up_builds_a_package_of_somebody_else() -> None:
    """A source package could run its build."""
    root = DEPLOY.parent
    files = (root / "Makefile", root / "scripts/setup", DEPLOY / "Dockerfile")
    text = "\n".join(file.read_text() for file in files).replace("\\\n", " ")
    installs = re.findall(r"pip (?:install|sync)\b[^&|\n]*", text)
    assert len(installs) >= 6
    for each in installs:
        assert "--only-binary :all:" in each or "--no-deps" in each, each


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(path)
    return parser


def containers() -> Iterator[tuple[Any, Any]]:
    for manifest in MANIFESTS:
        pod = manifest["spec"]["template"]["spec"]
        for container in pod["containers"]:
            yield pod, container


def commands() -> Iterator[list[str]]:
    for path in UNITS:
        program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
        assert program.endswith("/holdfast")
        yield words
    for service in COMPOSE["services"].values():
        if service["image"] == "holdfast":
            yield service["command"]
    for _, container in containers():
        yield container["args"]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_and_option_exists(words: list[str]) -> None:
    load_command(words[0]).parser.parse_args(words[1:])


def test_a_stop_waits_longer_than_the_drain() -> None:
    def drain(words: list[str]) -> float:
        return float(load_command("worker").parser.parse_args(words[1:]).drain)

    worker = unit(DEPLOY / "systemd" / "holdfast-worker@.service")["Service"]
    assert float(worker["TimeoutStopSec"]) > drain(shlex.split(worker["ExecStart"])[1:])
    service = COMPOSE["services"]["worker"]
    assert float(service["stop_grace_period"].removesuffix("s")) > drain(service["command"])
    for pod, container in containers():
        if container["name"] == "worker":
            assert pod["terminationGracePeriodSeconds"] > drain(container["args"])


def test_what_is_named_in_a_file_is_defined_in_it() -> None:
    for service in COMPOSE["services"].values():
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", ())) <= set(COMPOSE["services"])
    kinds = {"Job": "batch/v1", "Deployment": "apps/v1"}
    for manifest in MANIFESTS:
        assert kinds[manifest["kind"]] == manifest["apiVersion"]
        labels = manifest["spec"].get("selector", {}).get("matchLabels", {})
        template = manifest["spec"]["template"]
        assert labels.items() <= template.get("metadata", {}).get("labels", {}).items()
    for pod, container in containers():
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes


CONTAINER = {
    "name": str,
    "image": str,
    "args": [str],
    "env": [
        {
            "name": str,
            "value": str,
            "valueFrom": {"secretKeyRef": {"name": str, "key": str, "optional": bool}},
        }
    ],
    "envFrom": [{"secretRef": {"name": str, "optional": bool}}],
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
    "resources": {
        "requests": {"cpu": str, "memory": str},
        "limits": {"cpu": str, "memory": str},
    },
}
POD = {
    "containers": [CONTAINER],
    "restartPolicy": str,
    "terminationGracePeriodSeconds": int,
    "securityContext": {"runAsNonRoot": bool, "runAsUser": int},
    "volumes": [{"name": str, "secret": {"secretName": str, "items": [{"key": str, "path": str}]}}],
}
TEMPLATE = {"metadata": {"labels": {"app": str}}, "spec": POD}
KINDS = {
    "Job": {"backoffLimit": int, "template": TEMPLATE},
    "Deployment": {"replicas": int, "selector": {"matchLabels": {"app": str}}, "template": TEMPLATE},
}
"""Fields of Kubernetes, where the API has them and with its types. Another one has to be looked up in its reference first."""
REQUIRED = {"Job": ("template",), "Deployment": ("selector", "template")}
SERVICE = {
    "image": str,
    "command": [str],
    "environment": dict,
    "secrets": [str],
    "volumes": [str],
    "healthcheck": {"test": [str], "interval": str, "retries": int},
    "depends_on": dict,
    "stop_grace_period": str,
    "restart": str,
}
"""Fields of a service in the Compose specification."""


def check_fields(value: Any, known: Any, place: str) -> None:
    """Every field is a known one, in its place and of its type."""
    if isinstance(known, dict):
        assert isinstance(value, dict), place
        for name, inner in value.items():
            assert name in known, f"{place}.{name}"
            check_fields(inner, known[name], f"{place}.{name}")
    elif isinstance(known, list):
        assert isinstance(value, list), place
        for number, inner in enumerate(value):
            check_fields(inner, known[0], f"{place}[{number}]")
    else:
        assert type(value) is known, place


def test_kubernetes_knows_every_field_of_the_manifests() -> None:
    for manifest in MANIFESTS:
        kind = manifest["kind"]
        known = {"apiVersion": str, "kind": str, "metadata": {"name": str}, "spec": KINDS[kind]}
        check_fields(manifest, known, kind)
        assert all(field in manifest["spec"] for field in REQUIRED[kind])
        pod = manifest["spec"]["template"]["spec"]
        # A job cannot restart always, which is the default, and a deployment only always.
        assert pod.get("restartPolicy", "Always") in (
            ("OnFailure", "Never") if kind == "Job" else ("Always",)
        )
    for _, container in containers():
        assert all({"value", "valueFrom"} & each.keys() for each in container["env"])


def test_compose_knows_every_field_of_the_file() -> None:
    assert COMPOSE.keys() <= {"services", "volumes", "secrets"}
    conditions = {"service_started", "service_healthy", "service_completed_successfully"}
    for name, service in COMPOSE["services"].items():
        check_fields(service, SERVICE, name)
        assert {each["condition"] for each in service.get("depends_on", {}).values()} <= conditions
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert volumes <= COMPOSE["volumes"].keys()
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_the_units(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name.replace("@.", "@1.")
    copy.write_text(path.read_text().replace("/opt/holdfast/bin/holdfast", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
