"""The home: the folder everything of Holdfast lies in, and the paths in it. Only its owner can look inside."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from holdfast.core import SessionId, check_session_id
from holdfast.core.errors import StoreUnavailable

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Home:
    """Where things lie. Making one touches nothing; `prepare` creates the folders."""

    root: Path

    @classmethod
    def default(cls) -> "Home":
        """`$HOLDFAST_HOME`, else `~/.holdfast`."""
        chosen = os.environ.get("HOLDFAST_HOME")
        return cls(Path(chosen).expanduser().absolute() if chosen else Path.home() / ".holdfast")

    @property
    def config(self) -> Path:
        """What the person configured."""
        return self.root / "config.toml"

    @property
    def database(self) -> Path:
        """Every journal, and the index over them."""
        return self.root / "holdfast.db"

    @property
    def policies(self) -> Path:
        """The person's own policies."""
        return self.root / "policies"

    @property
    def models(self) -> Path:
        """Weights of models that run on this machine."""
        return self.root / "models"

    @property
    def grants(self) -> Path:
        """Standing yeses for every session."""
        return self.root / "grants.json"

    @property
    def trusted_folders(self) -> Path:
        """Folders that the person said they trust."""
        return self.root / "trusted-folders.json"

    @property
    def blobs(self) -> Path:
        """Contents too large for a row of the database."""
        return self.root / "blobs"

    @property
    def cache(self) -> Path:
        """What can be thrown away at any time."""
        return self.root / "cache"

    @property
    def log(self) -> Path:
        """What the program has to say about itself; made when there is something to say."""
        return self.root / "logs" / "holdfast.log"

    @property
    def holders(self) -> Path:
        """One locked file for each process that has the store open."""
        return self.root / "holders"

    @property
    def search(self) -> Path:
        """The full-text index, derived."""
        return self.cache / "search.db"

    def session_folder(self, session: SessionId) -> Path:
        """What belongs to one session besides its journal, by its real path: a home may lie behind a link, a workspace not."""
        return Path(os.path.realpath(self.root / "sessions")) / check_session_id(session)

    def workspace(self, session: SessionId) -> Path:
        """The folder a session works in when the person opens none of their own."""
        return self.session_folder(session) / "workspace"

    def escalations(self, session: SessionId) -> Path:
        """Questions to the person, and answers, as files."""
        return self.session_folder(session) / "escalations"

    def inbox(self, session: SessionId) -> Path:
        """Requests to the process that holds a session, as files."""
        return self.session_folder(session) / "inbox"

    def purse(self, session: SessionId) -> Path:
        """What a session and all its forks may spend together; lies with the first of them."""
        return self.session_folder(session) / "purse.json"

    def signs(self, session: SessionId) -> Path:
        """What a session's files looked like when they were last read, to be thrown away at any time."""
        return self.cache / "signs" / check_session_id(session)

    def audit(self, session: SessionId) -> Path:
        """The derived record of a session, for `tail -f`."""
        return self.session_folder(session) / "audit.jsonl"

    def prepare(self) -> None:
        """Create the folders, 0700 whatever the umask; one that others can look into is closed to them."""
        for folder in (
            self.root,
            self.policies,
            self.blobs,
            self.cache,
            self.holders,
            self.root / "sessions",
        ):
            private_folder(folder)

    def prepare_session(self, session: SessionId) -> Path:
        """Create a session's own folder, 0700."""
        private_folder(self.root)
        private_folder(self.root / "sessions")
        return private_folder(self.session_folder(session))

    def key(self) -> bytes:
        """32 random bytes that never leave this home; made once, whoever asks first."""
        path = self.root / "key"
        private_folder(self.root)
        if not path.exists():
            draft = self.root / f".key-{secrets.token_hex(8)}"
            write_private(draft, secrets.token_bytes(KEY_BYTES))
            try:
                os.link(draft, path)  # fails when another process was first, so that all agree on one key
            except FileExistsError:
                pass
            finally:
                draft.unlink()
            sync_folder(self.root)
        content = path.read_bytes() if path.is_file() else b""  # reading a pipe would never end
        if len(content) != KEY_BYTES:
            raise StoreUnavailable(
                f"{str(path)!r} has {len(content)} bytes and should have {KEY_BYTES}",
                hint="bring it back from a backup; without it, guests that wait for an answer start over",
            )
        return content


def private_folder(path: Path) -> Path:
    """A folder that only its owner can look into, as those above it that were not there."""
    try:
        if not path.parent.exists():
            private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        if path.stat().st_mode & 0o777 != 0o700:
            path.chmod(0o700)
    except OSError as problem:
        raise StoreUnavailable(
            f"the folder {str(path)!r} cannot be used: {problem.strerror}",
            hint="choose a folder of your own; HOLDFAST_HOME says where the home is",
        ) from problem
    return path


def write_private(path: Path, content: bytes) -> None:
    """Write a new file, 0600 whatever the umask, on disk when it returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make names in a folder durable: a rename is on disk only when its folder is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_private(path: Path, content: bytes) -> None:
    """Put a file of ours, 0600, in the place of what is there: whole or not at all, and on disk when it returns."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        write_private(draft, content)
        draft.replace(path)
        sync_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
