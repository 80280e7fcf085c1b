"""Hostile Python on a monitored host gets nothing, harms nothing, and the other sessions continue."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import KEY
from tests.guests.hostile import attack, attacks, disguised

from holdfast.guests import Engine, python_engine

ATTACKS = attacks()
SHORT = (
    "argument_repr", "attribute_walk_match", "builtins_getattr_import", "calls_wide", "carriage_return", "cb_cyclic_arg",
    "cb_deep_arg", "cb_flood", "cb_private_names", "decorator_exec", "deep_parse_unary", "dotdot_relative", "env",
    "eval_nested", "exception_context", "exception_frame", "fifo_write", "format_walk", "fstring_walk",
    "generator_frame", "hardlink_out", "integer_power", "json_deep", "loop_except", "memory_dict", "memory_multiply",
    "mount_proc_self_root", "nfkc_builtin", "nfkc_import", "null_byte", "open_abs_secret", "output_flood", "proc_environ",
    "read_huge_file", "recursion_function", "recursion_repr", "regex_nested", "socket_connect", "subclasses_walk",
    "symlink_folder_write", "symlink_read", "symlink_rename_out", "tool_walk", "trailing_slash_symlink", "write_outside",
)  # fmt: skip
"""One of each kind; the few that run to their limit take half a second each."""
MAX_GAP_SECONDS = 1.0
"""The longest pause of the event loop. Generous, because other tests run at the same time; a host that hangs pauses for longer."""
MAX_GROWN_BYTES = 640 << 20
"""The arguments of a call pass through the host before they are measured: a few times the memory of the guest."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[Engine]:
    made = python_engine(key=KEY, max_workers=4)
    yield made
    await made.close()


async def survive(folder: Path, code: str, engine: Engine) -> None:
    watch, ended = await attack(folder, code, engine)
    assert watch.escapes(ended) == []
    assert watch.longest_gap < MAX_GAP_SECONDS
    assert watch.grown_bytes < MAX_GROWN_BYTES


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.promise("P01")
async def test_an_attack_gets_nothing_and_other_sessions_continue(
    tmp_path: Path, name: str, engine: Engine
) -> None:
    await survive(tmp_path, ATTACKS[name], engine)


@pytest.mark.parametrize(
    "name", ["attribute_walk", "builtins_getattr_import", "fork", "mount_dev", "nfkc_import"]
)
@pytest.mark.promise("P01")
async def test_an_unchecked_attack_gets_nothing(tmp_path: Path, name: str, engine: Engine) -> None:
    await survive(tmp_path, disguised(ATTACKS[name]), engine)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(ATTACKS))
async def test_each_attack_gets_nothing_and_other_sessions_continue(
    tmp_path: Path, name: str, engine: Engine
) -> None:
    await survive(tmp_path, ATTACKS[name], engine)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(ATTACKS))
async def test_each_unchecked_attack_gets_nothing(tmp_path: Path, name: str, engine: Engine) -> None:
    await survive(tmp_path, disguised(ATTACKS[name]), engine)
