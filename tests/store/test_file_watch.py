"""File notifications: closing a watch holds nothing up."""

import os
import threading
from pathlib import Path

import pytest

from holdfast.store.files.file_watch import FileWatch


async def test_closing_a_watch_does_not_wait_for_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the kernel 20 to 50 ms, which every answer and every turn paid."""
    watch = FileWatch(tmp_path)
    descriptor, really_close = watch._descriptor, os.close
    is_left, is_closed, found = threading.Event(), threading.Event(), list[bool]()

    def close(number: int) -> None:
        if number == descriptor:
            found.append(is_left.wait(timeout=10))
            is_closed.set()
        really_close(number)

    monkeypatch.setattr(os, "close", close)
    watch.close()
    watch.close()
    is_left.set()
    assert is_closed.wait(timeout=60)
    assert found == [True], "the caller went on meanwhile, and it was closed once"
