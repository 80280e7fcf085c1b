"""What a program gives up before it starts: limits, capabilities, new privileges, files (Landlock) and system calls (seccomp).

The seccomp filter is a deny-list, because programs are arbitrary: it takes away what reaches the kernel's rare parts, and
what would build a namespace or a device. Namespaces, the overlay and Landlock are the walls around files and the network.
"""

import errno
import os
import resource

import holdfast.process.landlock as landlock
import holdfast.process.seccomp as seccomp
from holdfast.process.privileges import drop_capabilities
from holdfast.process.seccomp import ALLOW, FAIL, JUMP_EQUAL, JUMP_SET, LOAD, RETURN, step

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_RANDOM = ("/dev/random", "/dev/urandom")
_TERMINALS = "/dev/pts"

_FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 16, 24, 32
_AND = 0x54
_ALL_NAMESPACES = 0x7E020080 & ~0x80
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FILE_TYPE, _CHARACTER_DEVICE, _BLOCK_DEVICE = 0xF000, 0x2000, 0x6000
_SOCKETS = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink, which getifaddrs needs."""

_ON_EVERY_ARCHITECTURE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467,
}  # fmt: skip
_DENIED = {
    "x86_64": {
        "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165,
        "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175,
        "delete_module": 176, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "finit_module": 313,
        "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "syslog": 103, "fanotify_init": 300,
        "fanotify_mark": 301, "quotactl_fd": 443,
    },
    "aarch64": {
        "pivot_root": 41, "adjtimex": 171, "chroot": 51, "acct": 89, "settimeofday": 170, "mount": 40, "umount2": 39,
        "swapon": 224, "swapoff": 225, "reboot": 142, "init_module": 105, "delete_module": 106, "quotactl": 60,
        "nfsservctl": 42, "lookup_dcookie": 18, "clock_settime": 112, "kexec_load": 104, "add_key": 217,
        "request_key": 218, "keyctl": 219, "unshare": 97, "perf_event_open": 241, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "finit_module": 273, "kexec_file_load": 294,
        "bpf": 280, "userfaultfd": 282, "syslog": 116, "fanotify_init": 262, "fanotify_mark": 263, "quotactl_fd": 443,
    },
}  # fmt: skip
_CLONE3 = 435
_CLONE = {"x86_64": 56, "aarch64": 220}
_IOCTL = {"x86_64": 16, "aarch64": 29}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_KILL = {"x86_64": 62, "aarch64": 129}
_EVERYBODY = 0xFFFFFFFF
_MEMORY_FILES = {"x86_64": (319, 447), "aarch64": (279, 447)}
"""memfd_create and memfd_secret: memory that no process has to map, so that nothing counts it. Programs fall back to /dev/shm."""
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_SET_PRIORITY = {"x86_64": 141, "aarch64": 140}
_SET_IO_PRIORITY = {"x86_64": 251, "aarch64": 30}
_IO_PRIORITY_OF_PROCESS = 1
_SCHEDULE = {"x86_64": (142, 144, 203, 314), "aarch64": (118, 119, 122, 274)}
"""sched_setparam, sched_setscheduler, sched_setaffinity and sched_setattr."""
_SOCKET_TYPE, _STREAM = 0xF, 1
_MAKE_NODE = {
    "x86_64": ((133, _SECOND_ARGUMENT), (259, _THIRD_ARGUMENT)),
    "aarch64": ((33, _THIRD_ARGUMENT),),
}
"""The calls that create devices, and where each has the mode. They also create FIFOs, which programs need."""


def set_limits(limits: "dict[str, int]", without: "frozenset[str]") -> None:
    """Set resource limits by name, such as NOFILE. Raises OSError or ValueError."""
    for name, most in limits.items() if "limits" not in without else ():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        kept = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (kept, kept))


def give_up(
    writable: "list[str]",
    without: "frozenset[str]",
    *,
    readable: "list[str] | None" = None,
    ports: "tuple[int, ...]" = (),
) -> None:
    """Give up capabilities, new privileges, files and system calls, in the order that works. Raises OSError.

    Without namespaces, `readable` lists the only other files that can be read, and `ports` the only ones to connect to.
    """
    if "capabilities" not in without:
        drop_capabilities()
    seccomp.give_up_privileges()
    if "landlock" not in without:
        changes = landlock.READ | landlock.WRITE & ~landlock.MAKE_DEVICES
        places = dict.fromkeys((*_DEVICES, _TERMINALS, *writable), changes)
        withheld = landlock.READ | landlock.WRITE
        shown = dict.fromkeys(["/"] if readable is None else [*readable, *_RANDOM], landlock.READ)
        network = 0 if readable is None else landlock.ALL_NETWORK
        if landlock.restrict({**shown, **places}, withheld=withheld, network=network, ports=ports) == 0:
            raise OSError(errno.ENOSYS, "the kernel has no Landlock")
    if "seccomp" not in without:
        machine = os.uname().machine
        seccomp.install(machine, filter_steps(machine, has_namespaces=readable is None))


def filter_steps(machine: str, *, has_namespaces: bool) -> "list[bytes]":
    """The filter after its head: the number of the system call is loaded."""
    if machine not in _DENIED:
        raise OSError(errno.ENOSYS, f"system calls cannot be filtered on the architecture {machine}")
    denied = sorted({*_DENIED[machine].values(), *_ON_EVERY_ARCHITECTURE.values()})
    return [
        # ENOSYS, so that the C library falls back to clone, whose flags a filter can inspect.
        step(JUMP_EQUAL, 0, 1, _CLONE3),
        step(RETURN, value=FAIL | errno.ENOSYS),
        *_if_called(
            _CLONE[machine],
            [
                step(LOAD, value=_FIRST_ARGUMENT),
                step(JUMP_SET, 0, 1, _ALL_NAMESPACES),
                step(RETURN, value=FAIL | errno.EPERM),
            ],
        ),
        # Input that a program types into the terminal for the person.
        *_if_called(
            _IOCTL[machine],
            [
                step(LOAD, value=_SECOND_ARGUMENT),
                step(JUMP_EQUAL, 1, 0, _TIOCSTI),
                step(JUMP_EQUAL, 0, 1, _TIOCLINUX),
                step(RETURN, value=FAIL | errno.EPERM),
            ],
        ),
        *_if_called(
            _SOCKET[machine],
            _ordinary_sockets_only() if has_namespaces else _stream_sockets_only(),
        ),
        *(
            each
            for number in _MEMORY_FILES[machine]
            for each in _if_called(number, [step(RETURN, value=FAIL | errno.ENOSYS)])
        ),
        *_if_called(_PRLIMIT[machine], _own_limits_only()),
        *([] if has_namespaces else _own_processes_only(machine)),
        *(
            each
            for number, mode_at in _MAKE_NODE[machine]
            for each in _if_called(
                number,
                [
                    step(LOAD, value=mode_at),
                    step(_AND, value=_FILE_TYPE),
                    step(JUMP_EQUAL, 1, 0, _CHARACTER_DEVICE),
                    step(JUMP_EQUAL, 0, 1, _BLOCK_DEVICE),
                    step(RETURN, value=FAIL | errno.EPERM),
                ],
            )
        ),
        *(step(JUMP_EQUAL, len(denied) - place, 0, number) for place, number in enumerate(denied)),
        step(RETURN, value=ALLOW),
        step(RETURN, value=FAIL | errno.EPERM),
    ]


def _ordinary_sockets_only() -> "list[bytes]":
    return [
        step(LOAD, value=_FIRST_ARGUMENT),
        *(step(JUMP_EQUAL, len(_SOCKETS) - place, 0, family) for place, family in enumerate(_SOCKETS)),
        step(RETURN, value=FAIL | errno.EAFNOSUPPORT),
    ]


def _stream_sockets_only() -> "list[bytes]":
    """Without a network namespace: TCP alone, which Landlock holds. A socket file can belong to any daemon of the person."""
    return [
        step(LOAD, value=_FIRST_ARGUMENT),
        step(JUMP_EQUAL, 2, 0, _SOCKETS[1]),
        step(JUMP_EQUAL, 1, 0, _SOCKETS[2]),
        step(RETURN, value=FAIL | errno.EACCES),
        step(LOAD, value=_SECOND_ARGUMENT),
        step(_AND, value=_SOCKET_TYPE),
        step(JUMP_EQUAL, 1, 0, _STREAM),
        step(RETURN, value=FAIL | errno.EACCES),
    ]


def _own_limits_only() -> "list[bytes]":
    """The kernel lets a process lower the limits of every process of the same user. Reading them is allowed."""
    return [
        step(LOAD, value=_FIRST_ARGUMENT),
        step(JUMP_EQUAL, 5, 0, 0),
        step(LOAD, value=_THIRD_ARGUMENT),
        step(JUMP_EQUAL, 0, 2, 0),
        step(LOAD, value=_THIRD_ARGUMENT + 4),
        step(JUMP_EQUAL, 1, 0, 0),
        step(RETURN, value=FAIL | errno.EPERM),
    ]


def _own_processes_only(machine: str) -> "list[bytes]":
    """Without a process namespace: no signal to all processes of the person, and no priority of another process than the caller."""
    own = [
        step(LOAD, value=_FIRST_ARGUMENT),
        step(JUMP_EQUAL, 1, 0, 0),
        step(RETURN, value=FAIL | errno.EPERM),
    ]
    return [
        *_if_called(_KILL[machine], _not_everybody()),
        *_if_called(_SET_PRIORITY[machine], _own_priority_only(which=0)),
        *_if_called(_SET_IO_PRIORITY[machine], _own_priority_only(which=_IO_PRIORITY_OF_PROCESS)),
        *(each for number in _SCHEDULE[machine] for each in _if_called(number, own)),
    ]


def _own_priority_only(*, which: int) -> "list[bytes]":
    return [
        step(LOAD, value=_FIRST_ARGUMENT),
        step(JUMP_EQUAL, 0, 2, which),
        step(LOAD, value=_SECOND_ARGUMENT),
        step(JUMP_EQUAL, 1, 0, 0),
        step(RETURN, value=FAIL | errno.EPERM),
    ]


def _not_everybody() -> "list[bytes]":
    """A signal to all processes of the person; before Landlock 6 nothing else holds it."""
    return [
        step(LOAD, value=_FIRST_ARGUMENT),
        step(JUMP_EQUAL, 0, 1, _EVERYBODY),
        step(RETURN, value=FAIL | errno.EPERM),
    ]


def _if_called(number: int, steps: "list[bytes]") -> "list[bytes]":
    """Run steps for one system call; if they do not return, the call is allowed."""
    return [step(JUMP_EQUAL, 0, len(steps) + 1, number), *steps, step(RETURN, value=ALLOW)]
