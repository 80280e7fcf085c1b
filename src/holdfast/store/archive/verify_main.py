"""Verify an exported session with only Python's standard library: python verify.py SESSION.zip

Every event carries a SHA-256 over the event before it and its own session, number, time and bytes. The exit code is 0
if the journal is exactly what was written, 1 if something was changed, removed, added or moved, and 2 if the file
cannot be read. It cannot detect a journal that was rewritten from the first changed event on: to detect that, compare
the last hash with a copy that you keep elsewhere.
"""

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator


def check(archive: zipfile.ZipFile) -> tuple[list[str], int, str, object]:
    """Check every event against the one before. Returns the problems, the number of events, the last hash, the session."""
    problems: list[str] = []
    seen: set[str] = set()
    previous, expected, last_session = b"\0" * 32, 1, None
    with archive.open("events.jsonl") as lines:
        for line in lines:
            try:
                record = json.loads(line)
                session, seq, at_ms = record["session"], record["seq"], record["at_ms"]
                stored, start = bytes.fromhex(record["hash"]), line.index(b',"event":') + len(b',"event":')
            except (ValueError, KeyError, TypeError):
                problems.append(f"line {expected} is not an event")
                continue
            body = line.rstrip(b"\n")[start:-1]
            head = f"{session}\n{seq}\n{at_ms}\n".encode()
            if seq != expected:
                problems.append(f"event {expected} is missing; event {seq} is in its place")
            if hashlib.sha256(previous + head + body).digest() != stored:
                problems.append(f"event {seq} or the event before it was changed")
            if session != last_session:
                opened = record["event"]
                parent = opened.get("parent")
                origin = None if parent is None else (parent.get("session"), parent.get("seq"))
                if opened.get("event") != "session-opened" or session in seen:
                    problems.append(f"event {seq} starts a session without opening it")
                if origin != (None if last_session is None else (last_session, seq - 1)):
                    problems.append(f"event {seq} does not continue the events before it")
                seen.add(session)
            previous, expected, last_session = stored, seq + 1, session
    return problems, expected - 1, previous.hex(), last_session


def check_blobs(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield a problem for each blob that does not match its name."""
    for name in archive.namelist():
        if name.startswith("blobs/"):
            digest = hashlib.sha256()
            with archive.open(name) as content:
                while chunk := content.read(1 << 20):
                    digest.update(chunk)
            if digest.hexdigest() != name[len("blobs/") :]:
                yield f"the blob {name} was changed"


def main(path: str) -> int:
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        problems, events, last_hash, session = check(archive)
        problems += check_blobs(archive)
    if (manifest["session"], manifest["events"], manifest["last_hash"]) != (session, events, last_hash):
        problems.append("the journal does not end where the manifest says")
    for problem in problems:
        print(problem)
    print(f"session {session}: {events} events, last hash {last_hash}")
    print("DAMAGED" if problems else "OK")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except Exception as problem:
        print(f"cannot be read: {problem!r}", file=sys.stderr)
        sys.exit(2)
