"""A cable between two network namespaces that can be pulled. Only root can lay one."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.postgres import Server

SERVER, WORKER = "192.0.2.1", "192.0.2.2"
"""Addresses for examples (RFC 5737), which nothing else has."""


class Cable:
    """Two namespaces and a pair of interfaces, which are gone with this block."""

    def __enter__(self) -> "Cable":
        if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
            pytest.skip("NO NETWORK NAMESPACES HERE: a worker whose network is cut was not tried")
        self._holders = [self._hold(), self._hold()]
        try:
            self._in(0, f"link add end type veth peer name end netns {self._holders[1].pid}")
            for number, address in enumerate((SERVER, WORKER)):
                self._in(number, f"address add {address}/24 dev end")
                self._in(number, "link set end up")
        except subprocess.CalledProcessError as problem:
            self.__exit__()
            pytest.skip(
                f"NO NETWORK NAMESPACES HERE, a worker whose network is cut was not tried: {problem.stderr}"
            )
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self._holders:
            holder.kill()
            holder.communicate()

    @property
    def server_namespace(self) -> Path:
        return self._namespace(0)

    @property
    def worker_namespace(self) -> Path:
        return self._namespace(1)

    def pull(self) -> None:
        """From now on packets are lost, in both directions: nobody is told."""
        self._in(0, "link set end down")
        assert "NO-CARRIER" in self._in(1, "link show end")

    def plug_in(self) -> None:
        """The kernels send again what was lost."""
        self._in(0, "link set end up")

    def _hold(self) -> "subprocess.Popen[bytes]":
        """A process that keeps a namespace."""
        script = "echo && exec sleep infinity"
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE)
        assert holder.stdout is not None
        holder.stdout.readline()
        return holder

    def _namespace(self, number: int) -> Path:
        return Path(f"/proc/{self._holders[number].pid}/ns/net")

    def _in(self, number: int, words: str) -> str:
        command = ["nsenter", f"--net={self._namespace(number)}", "ip", *words.split()]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class NetworkServer(Server):
    """A server at one end of a cable. Other processes of this machine reach it by its socket."""

    def __init__(self, folder: Path, cable: Cable) -> None:
        super().__init__(folder, settings=(f"listen_addresses={SERVER}",))
        self._namespace = cable.server_namespace

    def create(self) -> None:
        super().create()
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {WORKER}/32 trust\n")

    def _command(self, settings: Sequence[str]) -> list[str]:
        return ["nsenter", f"--net={self._namespace}", *super()._command(settings)]
