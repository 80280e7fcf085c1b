"""The fork server of the tests: a program that fails at its end harms no other program."""

import os
import subprocess

from tests.support.fork_server import forked_python


def test_a_program_whose_output_nobody_reads_ends_alone() -> None:
    with subprocess.Popen(forked_python("-c", "input()"), stdin=subprocess.PIPE) as other:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            unread = subprocess.run(forked_python("-c", "print('lost')"), stdout=writer, check=False)
        finally:
            os.close(writer)
        assert unread.returncode == 120  # as the interpreter itself
        assert other.poll() is None
        other.communicate(b"\n")
    assert other.returncode == 0
