"""A bundle comes from programs that nobody trusts: whatever it holds, it is checked before it reaches a repository."""

import os
import subprocess
import zlib
from hashlib import sha1
from pathlib import Path

import pytest
from tests.commands.git.repositories import (
    commit_file,
    commit_tree,
    git,
    hash_blob,
    hash_tree,
    make_bundle,
    make_repository,
    snapshot,
)

from holdfast.commands.git import HostGit, quarantine
from holdfast.commands.git.bundle import MAX_BUNDLE_BYTES, parse_bundle
from holdfast.commands.git.quarantine import OfferedCommits, examine
from holdfast.commands.git.repository import find_repository
from holdfast.core.errors import CommandError

Pair = tuple[Path, Path]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """The person's repository, and a copy of it in which an attacker does what they like."""
    person = make_repository(tmp_path / "person")
    subprocess.run(["cp", "-a", str(person), str(tmp_path / "attacker")], check=True)
    (tmp_path / "scratch").mkdir()
    return person, tmp_path / "attacker"


async def examined(pair: Pair, bundle: bytes) -> OfferedCommits:
    """Examine a bundle for the person's repository, which stays as it is."""
    person, _ = pair
    before = snapshot(person)
    try:
        return await examine(
            HostGit(), find_repository(person), parse_bundle(bundle), scratch=person.parent / "scratch"
        )
    finally:
        assert snapshot(person) == before
        assert list((person.parent / "scratch").iterdir()) == []


async def test_a_good_bundle_passes(pair: Pair) -> None:
    commit_file(pair[1], "b.txt", "b\n", "second")
    offered = await examined(pair, make_bundle(pair[1], "main", "^main~1"))
    assert (offered.count, [file.path for file in offered.files]) == (1, ["b.txt"])


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".git\u200c", "..", ".", "a/b"])
async def test_a_tree_that_would_write_into_a_git_folder_is_refused(pair: Pair, name: str) -> None:
    _, attacker = pair
    inner = hash_tree(attacker, ("100755", "post-checkout", hash_blob(attacker, "#!/bin/sh\n")))
    commit_tree(attacker, hash_tree(attacker, ("40000", name, inner)), "main")
    with pytest.raises(CommandError, match="index-pack failed"):
        await examined(pair, make_bundle(attacker, "made", "^main"))


@pytest.mark.parametrize(
    "modules",
    [
        '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n',
        '[submodule "x"]\n\tpath = x\n\turl = "https://example.com\\n\\nhost=evil"\n',
        '[submodule "../../hooks"]\n\tpath = x\n\turl = https://example.com/x\n',
        '[submodule "x"]\n\tpath = -x\n\turl = https://example.com/x\n',
        '[submodule "x"]\n\tpath = x\n\turl = https://example.com/x\n\tupdate = !touch /tmp/pwned\n',
    ],
)
async def test_a_submodule_that_would_run_something_is_refused(pair: Pair, modules: str) -> None:
    _, attacker = pair
    commit_file(attacker, ".gitmodules", modules, "modules")
    with pytest.raises(CommandError, match=r"index-pack failed: .*gitmodules"):
        await examined(pair, make_bundle(attacker, "main", "^main~1"))


async def test_a_link_as_modules_file_is_refused(pair: Pair) -> None:
    _, attacker = pair
    commit_tree(
        attacker, hash_tree(attacker, ("120000", ".gitmodules", hash_blob(attacker, "/etc/passwd"))), "main"
    )
    with pytest.raises(CommandError, match=r"index-pack failed: .*gitmodules"):
        await examined(pair, make_bundle(attacker, "made", "^main"))


async def test_links_and_submodules_are_named_with_their_mode(pair: Pair) -> None:
    _, attacker = pair
    tree = hash_tree(
        attacker,
        ("120000", "link", hash_blob(attacker, "/etc/passwd")),
        ("160000", "sub", git(attacker, "rev-parse", "main")),
    )
    commit_tree(attacker, tree, "main")
    offered = await examined(pair, make_bundle(attacker, "made", "^main"))
    assert [(file.path, file.kind, file.mode) for file in offered.files] == [
        ("a.txt", "deleted", "000000"), ("link", "written", "120000"), ("sub", "written", "160000"),
    ]  # fmt: skip


async def test_a_file_that_only_an_older_commit_holds_is_named(pair: Pair) -> None:
    _, attacker = pair
    commit_file(attacker, "hidden.sh", "evil\n", "add")
    git(attacker, "rm", "-q", "hidden.sh")
    git(attacker, "commit", "-qm", "remove")
    offered = await examined(pair, make_bundle(attacker, "main", "^main~2"))
    assert [(file.path, file.kind) for file in offered.files] == [("hidden.sh", "deleted")]


async def test_what_a_merge_changes_by_itself_is_named(pair: Pair) -> None:
    _, attacker = pair
    git(attacker, "switch", "-qc", "side")
    commit_file(attacker, "side.txt", "s\n", "side")
    git(attacker, "switch", "-q", "main")
    commit_file(attacker, "main.txt", "m\n", "main")
    git(attacker, "merge", "-q", "--no-commit", "side")
    (attacker / "evil.txt").write_text("evil\n")
    git(attacker, "add", "evil.txt")
    git(attacker, "commit", "-qm", "merge")
    offered = await examined(pair, make_bundle(attacker, "main", "^main~2"))
    assert [file.path for file in offered.files] == ["evil.txt", "main.txt", "side.txt"]


@pytest.mark.promise("P12")
async def test_a_merge_that_takes_a_change_back_is_named(pair: Pair) -> None:
    _, attacker = pair
    for folder in pair:
        commit_file(folder, "safe.txt", "weak\n", "weak")
        commit_file(folder, "safe.txt", "strong\n", "strong")
    old = git(attacker, "rev-parse", "main~1")
    tree = git(attacker, "rev-parse", f"{old}^{{tree}}")
    for parents in (("main", old), (old, "main")):
        ids = [git(attacker, "rev-parse", each) for each in parents]
        commit_tree(attacker, tree, *ids)
        offered = await examined(pair, make_bundle(attacker, "made", "^main"))
        assert [(file.path, file.kind) for file in offered.files] == [("safe.txt", "written")]
    root = commit_tree(attacker, git(attacker, "rev-parse", "main~2^{tree}"))
    commit_tree(attacker, tree, git(attacker, "rev-parse", "main"), root)
    offered = await examined(pair, make_bundle(attacker, "made", "^main"))
    assert "safe.txt" in [file.path for file in offered.files], "without a common base"


async def test_a_clean_merge_names_only_what_the_commits_change(pair: Pair) -> None:
    _, attacker = pair
    for folder in pair:
        git(folder, "switch", "-qc", "upstream")
        commit_file(folder, "theirs.txt", "t\n", "theirs")
        git(folder, "switch", "-q", "main")
    commit_file(attacker, "own.txt", "o\n", "own")
    git(attacker, "merge", "-q", "--no-edit", "upstream")
    offered = await examined(pair, make_bundle(attacker, "main", "^main~2", "^upstream"))
    assert [file.path for file in offered.files] == ["own.txt"]


async def test_names_with_line_breaks_and_escapes_stay_one_name(pair: Pair) -> None:
    _, attacker = pair
    commit_file(attacker, "a\nb\t\x1b[31m", "x", "sub\x1b[31mject")
    offered = await examined(pair, make_bundle(attacker, "main", "^main~1"))
    assert [file.path for file in offered.files] == ["a\nb\t\x1b[31m"]


async def test_missing_objects_and_unknown_bases_are_refused(pair: Pair) -> None:
    _, attacker = pair
    tree = hash_tree(attacker, ("100644", "missing", "1" * 40))
    commit = commit_tree(attacker, tree, "main")
    pack = git_bytes(attacker, "pack-objects", "-q", "--stdout", stdin=f"{commit}\n{tree}\n".encode())
    base = git(attacker, "rev-parse", "main")
    with pytest.raises(CommandError, match="failed"):
        await examined(pair, header(commit, base) + pack)
    commit_file(attacker, "b", "b", "base")
    commit_file(attacker, "c", "c", "head")
    with pytest.raises(CommandError, match="does not have"):
        await examined(pair, make_bundle(attacker, "main", "^main~1"))


async def test_objects_that_do_not_belong_to_the_commits_are_refused(pair: Pair) -> None:
    _, attacker = pair
    commit_file(attacker, "b", "b", "second")
    stray = hash_blob(attacker, "stray")
    ids = git(attacker, "rev-list", "--objects", "--no-object-names", "main", "^main~1") + f"\n{stray}\n"
    pack = git_bytes(attacker, "pack-objects", "-q", "--stdout", stdin=ids.encode())
    head, base = git(attacker, "rev-parse", "main", "main~1").split()
    with pytest.raises(CommandError, match="do not belong"):
        await examined(pair, header(head, base) + pack)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b"# v2 git bundle", b"# v9 git bundle"),
        lambda content: content.replace(b"# v2 git bundle\n", b"# v3 git bundle\n@filter=blob:none\n"),
        lambda content: content.replace(b" refs/heads/main\n", b" refs/heads/main\n" + b"1" * 40 + b" refs/heads/other\n"),
        lambda content: content.replace(b" refs/heads/main\n", b" refs/heads/../../config\0\n"),
        lambda content: content.replace(b" refs/heads/main\n", b" ../hooks/x\n"),
        lambda content: content.replace(b"# v2 git bundle\n", b"# v2 git bundle\n" + b"-" + b"1" * 40 + b"\n" * 1),
        lambda content: content[: len(content) // 2],
        lambda content: content[:-30] + b"x" * 30,
        lambda content: content + b"trailing",
        lambda content: b"",
        lambda content: b"PACK" * 10,
        lambda content: b"# v2 git bundle\n" + b"-" * 400_000,
    ],
)  # fmt: skip
async def test_a_bundle_that_git_would_not_write_is_refused(pair: Pair, change: object) -> None:
    commit_file(pair[1], "b.txt", "b\n", "second")
    content = make_bundle(pair[1], "main", "^main~1")
    assert callable(change)
    with pytest.raises(CommandError):
        await examined(pair, change(content))


async def test_damaged_bytes_never_pass_as_something_else(pair: Pair) -> None:
    commit_file(pair[1], "b.txt", "b\n", "second")
    content = make_bundle(pair[1], "main", "^main~1")
    good = await examined(pair, content)
    start = content.index(b"\n\nPACK")
    for place in range(start, len(content), max(1, (len(content) - start) // 25)):
        damaged = content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :]
        with pytest.raises(CommandError):
            assert await examined(pair, damaged) == good


async def test_large_bundles_objects_and_totals_are_refused(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, attacker = pair
    with pytest.raises(CommandError, match="64 MiB"):
        parse_bundle(b"x" * (MAX_BUNDLE_BYTES + 1))
    (attacker / "zeros").write_bytes(bytes(3_000_000))
    git(attacker, "add", "zeros")
    git(attacker, "commit", "-qm", "zeros")
    bundle = make_bundle(attacker, "main", "^main~1")
    assert len(bundle) < 20_000
    assert (await examined(pair, bundle)).total_bytes > 3_000_000
    for name, limit, words in (
        ("MAX_OBJECT_BYTES", 2_000_000, "larger than"),
        ("MAX_TOTAL_BYTES", 2_000_000, "unpack to more"),
        ("MAX_OBJECTS", 2, "more than 2 objects"),
        ("MAX_COMMITS", 0, "more than 0 commits"),
        ("MAX_FILES", 0, "more than 0 files"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(quarantine, name, limit)
            with pytest.raises(CommandError, match=words):
                await examined(pair, bundle)


async def test_a_delta_that_asks_for_all_memory_is_refused(pair: Pair) -> None:
    """A delta may announce any size of its result; git would allocate it."""
    _, attacker = pair
    size = 4 << 30
    announced = bytearray()
    while size:
        announced.append((size & 0x7F) | (0x80 if size > 0x7F else 0))
        size >>= 7
    base = hash_blob(attacker, "base\n")
    delta = b"\x05" + bytes(announced) + b"\x90\x05"
    pack = b"PACK\0\0\0\2\0\0\0\1" + bytes([0x70 | len(delta)]) + bytes.fromhex(base) + zlib.compress(delta)
    pack += sha1(pack).digest()
    with pytest.raises(CommandError, match="index-pack failed"):
        await examined(pair, header("1" * 40, git(attacker, "rev-parse", "main")) + pack)


@pytest.mark.parametrize(
    "text", ["gitdir: ../other/.git\n", "gitdir: /etc\n", "nothing\n", "gitdir: ../other/.git/worktrees/x\n"]
)
def test_a_forged_git_file_does_not_lead_to_another_repository(tmp_path: Path, text: str) -> None:
    make_repository(tmp_path / "other")
    git(tmp_path / "other", "worktree", "add", "-q", str(tmp_path / "x"))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / ".git").write_text(text)
    with pytest.raises(CommandError):
        find_repository(workspace)


def test_the_forms_of_a_repository_are_found(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "side"))
    assert find_repository(tmp_path / "side").common_dir == str(main / ".git")
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(main), "lib")
    assert find_repository(main, "lib").common_dir == str(main / ".git/modules/lib")
    assert find_repository(main / "lib").common_dir == str(main / ".git/modules/lib")
    (main / "d").mkdir()
    assert find_repository(main, "d").folder == "."
    os.symlink(main / ".git", main / "d" / ".git")
    for folder in ("d", "..", "/", "missing/../.."):
        with pytest.raises(CommandError):
            find_repository(main, folder)


def header(head: str, base: str) -> bytes:
    return f"# v2 git bundle\n-{base} base\n{head} refs/heads/main\n\n".encode()


def git_bytes(folder: Path, *arguments: str, stdin: bytes) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=folder, input=stdin, capture_output=True, check=True
    ).stdout
