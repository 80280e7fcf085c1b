"""Everything that a worker gives up before untrusted code runs in it, in the order that works.

The engine is the wall; this is the moat below it. Should it have a hole, the process behind it opens what it was left,
starts nothing, reaches no network and sees no environment. Each wall that the kernel has must stand, or the worker does
not start.
"""

import os
import sys

import holdfast.process.landlock as landlock
import holdfast.process.privileges as privileges
import holdfast.process.seccomp_profiles as seccomp_profiles

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache")
_PROGRAM_DESCRIPTOR = 64
"""Above every descriptor that a confined program can ever get: it closes when the program starts, for good."""


def confine_to_folder(folder: str, *, file_bytes: int) -> tuple[str, ...]:
    """From here on: this folder, and nothing else. Returns what is in force; raises OSError."""
    privileges.check_alone()
    # A container's root works on a folder of the user's: it keeps the right to write files of other owners.
    kept = 1 << privileges.CAP_DAC_OVERRIDE
    privileges.give_up(file_bytes=file_bytes, open_files=256, kept_capabilities=kept)
    version = landlock.restrict({folder: landlock.FILES_AND_FOLDERS})
    has_filter = seccomp_profiles.restrict(seccomp_profiles.WORK_ON_FILES)
    return in_force(landlock_version=version, has_filter=has_filter)


def confine_to_program(program: str) -> int:
    """From here on: its pipes, and becoming this program, which is behind the descriptor returned. Raises OSError.

    It may read the system's libraries, because it starts after the walls stand. It cannot start anything: the one call
    that the filter lets through names a descriptor that closes with it, and whose number can never be had again.
    """
    privileges.check_alone()
    opened = os.open(program, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(opened, _PROGRAM_DESCRIPTOR, inheritable=False)
    os.close(opened)
    privileges.give_up(file_bytes=0, open_files=_PROGRAM_DESCRIPTOR)
    landlock.restrict(dict.fromkeys((program, *_LIBRARIES), landlock.RUN))
    seccomp_profiles.restrict(seccomp_profiles.COMPUTE, start_descriptor=_PROGRAM_DESCRIPTOR)
    return _PROGRAM_DESCRIPTOR


def in_force(*, landlock_version: int, has_filter: bool) -> tuple[str, ...]:
    """The walls as facts for the record."""
    return (
        f"landlock version {landlock_version}" if landlock_version else "no landlock: this kernel has none",
        "seccomp allow-list" if has_filter else "no seccomp: no list for this architecture",
        "no environment, no new privileges, no capabilities",
    )


def expected() -> tuple[str, ...]:
    """What will be in force on this machine."""
    return in_force(landlock_version=landlock.version(), has_filter=seccomp_profiles.is_known_here())


def main() -> None:
    """Become the program that the first argument names, behind walls; a refusal goes to standard error."""
    try:
        seccomp_profiles.start(confine_to_program(sys.argv[1]), sys.argv[1:])
    except OSError as refused:
        sys.exit(f"the sandbox process cannot be confined: {refused}")
