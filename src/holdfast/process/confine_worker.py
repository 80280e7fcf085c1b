"""Confinement of a sandbox worker: everything that it gives up before untrusted code runs in it, in the required order.

This is the second line of defence beneath the sandbox engine. If the engine has a hole, the process can open only what
it was left, start no program, reach no network and see no environment. If the kernel supports a mechanism and it cannot
be put in force, the worker does not start.
"""

import os
import sys

import holdfast.process.landlock as landlock
import holdfast.process.privileges as privileges
import holdfast.process.seccomp_profiles as seccomp_profiles

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache")
_MAX_DESCRIPTORS = 1 << 20
_PROGRAM_DESCRIPTOR = 64
"""Above every descriptor that a confined program can get. It closes when the program starts and never comes back."""


def confine_to_folder(folder: str, *, file_bytes: int) -> tuple[str, ...]:
    """Confine this process to a folder. Returns what is in force; raises OSError."""
    privileges.check_alone()
    # Root in a container works on a folder of another user, so it keeps the right to write files of other owners.
    kept = 1 << privileges.CAP_DAC_OVERRIDE
    privileges.give_up(file_bytes=file_bytes, open_files=256, kept_capabilities=kept)
    version = landlock.restrict({folder: landlock.FILES_AND_FOLDERS})
    has_filter = seccomp_profiles.restrict(seccomp_profiles.WORK_ON_FILES)
    return in_force(landlock_version=version, has_filter=has_filter)


def confine_to_program(program: str, *, message_bytes: int | None = None) -> int:
    """Confine this process to its pipes and to executing one program, through the returned descriptor. Raises OSError.

    The program can read the system's libraries, because it starts after the confinement. It cannot start anything else:
    the filter allows one call, which names a descriptor that closes with it and whose number cannot be reused. A program that writes more than `message_bytes` at once dies with SIGSYS.
    """
    privileges.check_alone()
    os.closerange(3, _MAX_DESCRIPTORS)  # what the host itself inherited, from a shell for example
    opened = os.open(program, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(opened, _PROGRAM_DESCRIPTOR, inheritable=False)
    os.close(opened)
    privileges.give_up(file_bytes=0, open_files=_PROGRAM_DESCRIPTOR)
    landlock.restrict(dict.fromkeys((program, *_LIBRARIES), landlock.RUN))
    seccomp_profiles.restrict(
        seccomp_profiles.COMPUTE, start_descriptor=_PROGRAM_DESCRIPTOR, write_bytes=message_bytes
    )
    return _PROGRAM_DESCRIPTOR


def in_force(*, landlock_version: int, has_filter: bool) -> tuple[str, ...]:
    """Describe the confinement for the journal."""
    return (
        f"landlock version {landlock_version}" if landlock_version else "no landlock: this kernel has none",
        "seccomp allow-list" if has_filter else "no seccomp: no list for this architecture",
        "no environment, no new privileges, no capabilities",
    )


def expected() -> tuple[str, ...]:
    """Describe what will be in force on this machine."""
    return in_force(landlock_version=landlock.version(), has_filter=seccomp_profiles.is_known_here())


def main(*, message_bytes: int) -> None:
    """Confine this process and execute the program that the first argument names; report an error to standard error."""
    try:
        program = confine_to_program(sys.argv[1], message_bytes=message_bytes)
        seccomp_profiles.start(program, sys.argv[1:])
    except OSError as refused:
        sys.exit(f"the sandbox process cannot be confined: {refused}")
