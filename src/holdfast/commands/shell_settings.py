"""The settings of commands: the table `[shell]` of config.toml."""

from typing import Literal

from holdfast.core import Value, canonical_host


class ShellSettings(Value, forbid_unknown_fields=True):
    """Whether an agent may run programs, and their limits. Every default is safe to keep."""

    enabled: Literal["auto"] | bool = "auto"
    """`auto`: where the full sandbox is available; true: also in a weaker sandbox, which the policy may ask about; false: never."""
    timeout_seconds: float = 120.0
    """How long a program may run unless the call says otherwise."""
    memory_mb: int = 4096
    """Memory of all programs of a session together."""
    disk_mb: int = 8192
    """Disk space that the programs of a session may use for what is not in the workspace yet."""
    processes: int = 512
    """How many processes may run at once."""
    output_kb: int = 32
    """How much output the model gets, half of it from the start and half from the end. The whole output is kept."""
    scratch: Literal["drop", "keep"] = "drop"
    """What a rewind does with files that git ignores, such as caches and installed packages."""
    toolchains: tuple[str, ...] = ("auto",)
    """Folders of your home that programs may read, such as `~/.pyenv`; `auto` is the known toolchains."""
    environment: tuple[str, ...] = ()
    """Names of environment variables that are passed to programs."""
    ports: tuple[int, ...] = ()
    """Ports of this machine's loopback that programs may connect to."""
    private_hosts: tuple[str, ...] = ()
    """Hosts in a private network that programs may connect to without a question about their address, such as a company's
    mirror of a registry. The policy still judges the host. Names without patterns; never this machine."""

    def __post_init__(self) -> None:
        for host in self.private_hosts:
            if canonical_host(host) != host or host == "localhost":
                raise ValueError(
                    f"private_hosts: {host!r} is not the name of a host in its usual form, such as pypi.example.com"
                )
