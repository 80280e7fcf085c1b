"""Confinement by the kernel: what a confined process can still do."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast.process.landlock as landlock
import holdfast.process.seccomp_profiles as seccomp_profiles

needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(
    not seccomp_profiles.is_known_here(), reason="no list of system calls for this architecture"
)

TO_FOLDER = "confine.confine_to_folder(sys.argv[1], file_bytes=1 << 20)"
TO_PROGRAM = "confine.confine_to_program('/bin/true')"
FORBIDDEN = [
    "os.fork()",
    "os.execv('/bin/true', ['true'])",
    "os.posix_spawn('/bin/true', ['true'], dict())",
    "socket.socket()",
    "socket.socketpair()",
    "os.kill(os.getppid(), 0)",
    "os.setuid(0)",
    "os.chmod(sys.argv[1], 0o777)",
    "os.memfd_create('x')",
    "os.mknod(sys.argv[1] + '/node')",
    "os.sched_setaffinity(0, [0])",
    "os.setpgid(0, 0)",
]

CONFINED = """
import os, sys
import holdfast.process.confine_worker as confine
import socket, signal, threading
{confinement}
try:
    {attempt}
    print('done')
except BaseException as problem:
    print(type(problem).__name__, getattr(problem, 'errno', ''))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder beside another one."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def confined(workspace: Path, attempt: str, confinement: str = TO_FOLDER) -> str:
    """Run an attempt in a process that has confined itself like a worker, and return its output."""
    command = [
        sys.executable,
        "-c",
        CONFINED.format(attempt=attempt, confinement=confinement),
        str(workspace),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout.strip()


@pytest.mark.parametrize(
    "attempt",
    [
        "open(sys.argv[1] + '/new', 'w').write('x')",
        "os.mkdir(sys.argv[1] + '/folder'); os.rename(sys.argv[1] + '/folder', sys.argv[1] + '/moved')",
        "t = threading.Thread(target=lambda: None); t.start(); t.join()",
    ],
)
def test_a_confined_process_can_work_in_its_folder(workspace: Path, attempt: str) -> None:
    assert confined(workspace, attempt) == "done"


@needs_landlock
@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd')",
        "open(sys.argv[1] + '/../beside')",
        "os.listdir('/')",
        "open('/proc/self/environ')",
        "open(sys.argv[1] + '/../new', 'w')",
        "os.symlink('/etc', sys.argv[1] + '/link')",
        "os.mkfifo(sys.argv[1] + '/fifo')",
        "os.rename(sys.argv[1], sys.argv[1] + '2')",
    ],
)
def test_a_confined_process_reaches_nothing_but_the_workspace(workspace: Path, attempt: str) -> None:
    (workspace.parent / "beside").write_text("secret")
    assert confined(workspace, attempt).startswith("PermissionError")


@needs_seccomp
@pytest.mark.parametrize("attempt", FORBIDDEN)
def test_a_confined_process_can_make_only_the_listed_system_calls(workspace: Path, attempt: str) -> None:
    assert confined(workspace, attempt) == "PermissionError 1"


@needs_seccomp
@pytest.mark.parametrize(
    "attempt",
    [*FORBIDDEN, "os.mkdir(sys.argv[1] + '/x')", "os.unlink(sys.argv[1])", "os.readlink('/proc/self/exe')"],
)
def test_a_computing_process_can_make_fewer_system_calls(workspace: Path, attempt: str) -> None:
    assert confined(workspace, attempt, TO_PROGRAM) == "PermissionError 1"


@needs_landlock
@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd')",
        "open(sys.argv[1] + '/file')",
        "os.listdir('/usr/lib')",
        "open('/usr/lib/x', 'w')",
    ],
)
def test_a_computing_process_cannot_open_a_file(workspace: Path, attempt: str) -> None:
    (workspace / "file").write_text("not for it")
    assert confined(workspace, attempt, TO_PROGRAM).startswith("PermissionError")


def test_the_program_descriptor_cannot_be_reused(workspace: Path) -> None:
    assert confined(workspace, "os.close(64); os.dup2(0, 64)", TO_PROGRAM).startswith(("OSError", "Perm"))


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["/bin/echo", "hello"], "hello\n"),
        (["/usr/bin/env"], ""),
        (["/bin/cat", "/etc/passwd"], ""),
        (["/no/such/program"], ""),
    ],
)
def test_a_program_starts_confined_and_without_an_environment(command: list[str], output: str) -> None:
    launch = "from holdfast.process.confine_worker import main; main(message_bytes=1000)"
    started = subprocess.run(
        [sys.executable, "-c", launch, *command],
        env={"HOST_SECRET": "hidden"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert started.stdout == output
    assert "HOST_SECRET" not in started.stdout + started.stderr


def test_a_process_with_threads_refuses_to_confine_itself(workspace: Path) -> None:
    program = (
        "import sys, threading\nimport holdfast.process.confine_worker as confine\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "try: confine.confine_to_folder(sys.argv[1], file_bytes=1)\nexcept OSError as refused: print(refused)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, str(workspace)], capture_output=True, text=True, check=True
    )
    assert "before it starts threads" in output.stdout


@needs_seccomp
@pytest.mark.parametrize(("size", "ends"), [(1000, 0), (1001, -signal.SIGSYS), (1 << 33, -signal.SIGSYS)])
def test_a_program_that_writes_too_much_at_once_is_ended(size: int, ends: int) -> None:
    attempt = (
        "import ctypes, os, sys\n"
        "import holdfast.process.confine_worker as confine\n"
        "libc = ctypes.CDLL(None)\n"
        "confine.confine_to_program('/bin/true', message_bytes=1000)\n"
        f"libc.write(1, b'x' * 1001, ctypes.c_size_t({size}))\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False)
    assert (done.returncode, len(done.stdout)) == (ends, size if ends == 0 else 0)
