"""The home: Holdfast's data directory, and the paths in it. Only its owner can access it."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from holdfast.core import SessionId, Value, check_session_id
from holdfast.core.errors import StoreUnavailable

KEY_BYTES = 32
KEY_FILE_VARIABLE = "HOLDFAST_KEY_FILE"


class Home(Value, kw_only=False):
    """The paths of a data directory. Creating the object touches no file; `prepare` creates the folders."""

    root: Path

    @classmethod
    def default(cls) -> "Home":
        """`$HOLDFAST_HOME`, else `~/.holdfast`."""
        chosen = os.environ.get("HOLDFAST_HOME")
        return cls(Path(chosen).expanduser().absolute() if chosen else Path.home() / ".holdfast")

    @property
    def config(self) -> Path:
        """The user's configuration."""
        return self.root / "config.toml"

    @property
    def database(self) -> Path:
        """The database of all journals and their index."""
        return self.root / "holdfast.db"

    @property
    def policies(self) -> Path:
        """The user's own policies."""
        return self.root / "policies"

    @property
    def models(self) -> Path:
        """The weights of local models."""
        return self.root / "models"

    @property
    def grants(self) -> Path:
        """Grants that apply to every session."""
        return self.root / "grants.json"

    @property
    def file_labels(self) -> Path:
        """The levels of contents that sessions wrote, by digest."""
        return self.root / "file-labels.jsonl"

    @property
    def trusted_folders(self) -> Path:
        """The folders that the user trusts."""
        return self.root / "trusted-folders.json"

    @property
    def key_file(self) -> Path:
        """The key that signs snapshots of guests."""
        return self.root / "key"

    @property
    def export_key_file(self) -> Path:
        """The key that signs exports; created with the first one."""
        return self.root / "export-key"

    @property
    def trusted_export_keys(self) -> Path:
        """The public keys of other homes of the user, one a line."""
        return self.root / "trusted-export-keys"

    @property
    def blobs(self) -> Path:
        """Blobs that are too large for a row of the database."""
        return self.root / "blobs"

    @property
    def postgres(self) -> Path:
        """The PostgreSQL server of `holdfast up`."""
        return self.root / "postgres"

    @property
    def cache(self) -> Path:
        """Files that can be deleted at any time."""
        return self.root / "cache"

    @property
    def log(self) -> Path:
        """The log file; created with the first entry."""
        return self.root / "logs" / "holdfast.log"

    @property
    def process_locks(self) -> Path:
        """One locked file for each open store."""
        return self.root / "holders"

    @property
    def web_servers(self) -> Path:
        """One locked file for each web server that runs, with its address."""
        return self.root / "web-servers"

    @property
    def search(self) -> Path:
        """The full-text index, which is derived."""
        return self.cache / "search.db"

    @property
    def usage(self) -> Path:
        """What sessions used, which is derived."""
        return self.cache / "usage.db"

    def session_folder(self, session: SessionId) -> Path:
        """The folder of one session, as a real path: a home can be behind a symlink, a workspace cannot."""
        return Path(os.path.realpath(self.root / "sessions")) / check_session_id(session)

    def workspace(self, session: SessionId) -> Path:
        """The folder that a session works in if the user does not choose one."""
        return self.session_folder(session) / "workspace"

    def escalations(self, session: SessionId) -> Path:
        """Escalations and answers, as files."""
        return self.session_folder(session) / "escalations"

    def control_requests(self, session: SessionId) -> Path:
        """Control requests to the process that holds a session, as files."""
        return self.session_folder(session) / "inbox"

    @property
    def request_signals(self) -> Path:
        """The folder through which a process signals that it left control requests; empty between two signals."""
        return self.cache / "signals"

    def tree_budget(self, session: SessionId) -> Path:
        """Where version 0.1 kept the shared budget of a session and its forks; it moves into the store."""
        return self.session_folder(session) / "purse.json"

    def agent_homes(self, session: SessionId) -> tuple[Path, ...]:
        """The folders in which external programs that answer in a session of a team keep their own record of it."""
        return tuple((self.root / "teams").glob(f"*/pairs/{check_session_id(session)}"))

    def stat_cache(self, session: SessionId) -> Path:
        """A cache of the file status of a session's workspace; can be deleted at any time."""
        return self.cache / "signs" / check_session_id(session)

    def copies(self, session: SessionId) -> Path:
        """Copies of a session's files, to look at without its lease; can be deleted at any time."""
        return self.cache / "copies" / check_session_id(session)

    def audit(self, session: SessionId) -> Path:
        """The audit log of a session, derived from its journal, for `tail -f`."""
        return self.session_folder(session) / "audit.jsonl"

    def prepare(self) -> None:
        """Create the folders with mode 0700, whatever the umask; fix the mode of existing ones."""
        for folder in (
            self.root,
            self.policies,
            self.blobs,
            self.cache,
            self.process_locks,
            self.root / "sessions",
        ):
            private_folder(folder)

    def prepare_session(self, session: SessionId) -> Path:
        """Create a session's folder with mode 0700."""
        private_folder(self.root)
        private_folder(self.root / "sessions")
        return private_folder(self.session_folder(session))

    def claim_for_tenant(self, name: str) -> None:
        """Bind this data directory to one tenant of a store that machines share. Raises StoreUnavailable if it has another one.

        Two tenants can have sessions of one id, and the files of a session are found here by its id.
        """
        path = self.root / "tenant"
        if not path.exists():
            self._create_once(path, name.encode())
        found = path.read_bytes()[:100].decode("ascii", "replace") if path.is_file() else ""
        if found != name:
            raise StoreUnavailable(
                f"the data directory {str(self.root)!r} belongs to the tenant {found!r}, not to {name!r}",
                hint="use a data directory for each tenant: set HOLDFAST_HOME",
            )

    def serves_shared_store(self) -> bool:
        """Whether a process of this data directory used a store that machines share: then the folder of a session need not be of one here."""
        return (self.root / "tenant").exists()

    def key(self) -> bytes:
        """Return the secret key of this home, 32 random bytes. The first caller creates it.

        `$HOLDFAST_KEY_FILE` names a file instead, for machines that share sessions: one key of 64 hexadecimal digits a line,
        the newest first. Then it returns all of them, one after the other.
        """
        if given := os.environ.get(KEY_FILE_VARIABLE):
            return _read_keys(Path(given))
        return self._secret(self.key_file, loss="guests that wait for an answer start over")

    def export_key(self) -> bytes:
        """Return the key that signs the exports of this home, 32 random bytes. The first caller creates it.

        Unlike `key`, it is never shared: it stands for this home and the levels of contents that it keeps.
        Raises StoreUnavailable.
        """
        try:
            return self._secret(self.export_key_file, loss="earlier exports count as a stranger's")
        except OSError as problem:
            raise StoreUnavailable(
                f"{str(self.export_key_file)!r} cannot be used: {problem.strerror}",
                hint=f"check the permissions of {str(self.root)!r}",
            ) from problem

    def _secret(self, path: Path, *, loss: str) -> bytes:
        private_folder(self.root)
        if not path.exists():
            self._create_once(path, secrets.token_bytes(KEY_BYTES))
        content = path.read_bytes() if path.is_file() else b""  # reading a pipe could block forever
        if len(content) != KEY_BYTES:
            raise StoreUnavailable(
                f"{str(path)!r} has {len(content)} bytes instead of {KEY_BYTES}",
                hint=f"restore it from a backup; if you delete it, {loss}",
            )
        return content

    def _create_once(self, path: Path, content: bytes) -> None:
        """Create a file completely or not at all, unless another process is first: all use the same one."""
        draft = self.root / f".{path.name}-{secrets.token_hex(8)}"
        write_private(draft, content)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_folder(self.root)


def _read_keys(path: Path) -> bytes:
    try:
        lines = [line.strip() for line in path.read_text("ascii").splitlines() if line.strip()]
        keys = [bytes.fromhex(line) for line in lines]
    except (OSError, ValueError) as problem:
        raise StoreUnavailable(
            f"the keys in {str(path)!r} cannot be read: {getattr(problem, 'strerror', None) or 'not hexadecimal'}",
            hint=f"check {KEY_FILE_VARIABLE}; make a key with: openssl rand -hex {KEY_BYTES}",
        ) from None
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise StoreUnavailable(
            f"{str(path)!r} does not have keys of {2 * KEY_BYTES} digits, one a line",
            hint=f"make one with: openssl rand -hex {KEY_BYTES}",
        )
    return b"".join(keys)


def private_folder(path: Path) -> Path:
    """Create a folder, and missing ones above it, that only the owner can access."""
    try:
        if not path.parent.exists():
            private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        if path.stat().st_mode & 0o777 != 0o700:
            path.chmod(0o700)
    except OSError as problem:
        raise StoreUnavailable(
            f"the folder {str(path)!r} cannot be used: {problem.strerror}",
            hint="set HOLDFAST_HOME to a folder that you own",
        ) from problem
    return path


def write_private(path: Path, content: bytes) -> None:
    """Create a file with mode 0600, whatever the umask; durable when it returns."""
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
    """Sync a folder: a rename is durable only after its folder is synced."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_private(path: Path, content: bytes) -> None:
    """Create a file with mode 0600, whole and durable. Raises FileExistsError if there is anything at the path."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        write_private(draft, content)
        os.link(draft, path, follow_symlinks=False)
        with suppress(OSError):  # read and removed already
            # A program that watches for completed files sees the closing of a writer, not a new link.
            os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def replace_private(path: Path, content: bytes) -> None:
    """Replace a file atomically by one with mode 0600; durable when it returns."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        write_private(draft, content)
        draft.replace(path)
        sync_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
