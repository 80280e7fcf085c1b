"""Guest code that defines `open` and its file objects as CPython has them.

The interpreter's own file object asks the host for every `write`, and has no `+` modes, encodings or newlines. This one keeps the
content in the guest and asks the host when a file is opened, flushed or closed. The host decodes and encodes, because it has all
codecs (`file_calls`), except for long texts in UTF-8, which take up to four times their bytes in the host and not here. The guest loads this code before the first run that names `open`, or gives an encoding to `read_text`.
"""

import re

VERSION = 6
"""Of the code below. A session whose state has another version loads the code again."""

HOST_FUNCTION = "_holdfast_file"
"""What the code below calls. Only `file_calls` answers it."""

END_OF_RUN = "_holdfast_end_run()"
"""Writes what open files still hold. Its value says whether any file is still open for writing."""

AFTER_ERROR = "_holdfast_discard()"
"""Discards what open files still hold. Its value is the names of those files."""

FILE_CLASS = "_HoldfastFile"
"""The class of the file objects."""

_USES_OPEN = re.compile(r"(?<![\w.])open\b|\.\s*open\s*\(")
_USES_TEXT_METHODS = re.compile(r"\.\s*(?:read_text|write_text|touch)\s*\(")


def uses_open(code: str) -> bool:
    """Whether code may call `open`."""
    return _USES_OPEN.search(code) is not None


def uses_text_methods(code: str) -> bool:
    """Whether code may call `read_text`, `write_text` or `touch` of a path."""
    return _USES_TEXT_METHODS.search(code) is not None


PRELUDE = r"""
_holdfast_print = print
_holdfast_files = {}
_holdfast_ids = [0]
_holdfast_waiting = []
_holdfast_unseen = []
_holdfast_here = None

from pathlib import Path as _HoldfastPathType
from re import search as _holdfast_find

def _holdfast_unsupported(message):
    try:
        _holdfast_file("unsupported", message)
    except NotImplementedError:
        raise OSError(message)

class _HoldfastFile:
    def __init__(self, name, path, mode, kind, is_binary, encoding, errors, newline):
        _holdfast_ids[0] += 1
        self.name = name
        self.mode = mode
        self.closed = False
        if not is_binary:
            self.encoding = encoding
            self.errors = errors
        self._id = _holdfast_ids[0]
        self._path = path
        self._kind = kind
        self._is_binary = is_binary
        self._codec = None if is_binary else encoding.lower().replace("_", "-")
        self._errors = errors
        self._newline = newline
        self._can_read = kind == "r" or "+" in mode
        self._can_write = kind != "r" or "+" in mode
        self._empty, self._feed, self._zero = (b"", b"\n", b"\0") if is_binary else ("", "\n", "\0")
        self._is_utf8 = self._codec in ("utf-8", "utf8")
        self._data = self._empty
        self._parts = []
        self._size = self._pos = self._base = self._writes = 0
        self._written = -1 if kind in "wx" else 0
        self._problem = ""
        self._is_plain = self._can_tell = True
        self._can_hold = self._can_write
        self._is_unseen = False
        self._fresh = [] if kind in "wx" else None
        self._is_dirty = self._has_read = self._is_large = self._is_at_end = False
        self._is_fast = self._was_fast = False
        self._failure = None
        self._offset = self._ahead_at = self._ahead_end = 0
        self._ahead = []
        self._has_base = kind != "a" or self._can_read
        self._is_released = False

    def __repr__(self):
        if self._is_binary:
            kind = "BufferedRandom" if "+" in self.mode else "BufferedWriter" if self._can_write else "BufferedReader"
            return f"<_io.{kind} name={self.name!r}>"
        return f"<_io.TextIOWrapper name={self.name!r} mode={self.mode!r} encoding={self.encoding!r}>"

    def _start(self):
        options = (self._can_read, self._can_write, self._codec, self._errors)
        data, self._problem, exists = _holdfast_file("open to decode", self._id, self._path, self._kind, *options)
        if data is None and self._kind == "r":
            self._is_large = True
            self._refill()
        elif data is not None:
            if not self._is_binary and isinstance(data, bytes):
                data = data.decode("utf-8")
            self._data = data
            self._size = len(data)
            self._is_plain = self._is_binary or self._newline is not None or "\r" not in data
            if self._kind in "ra":
                self._written = self._size
        self._is_dirty = self._kind in "wx" or (self._kind == "a" and not exists)
        if self._kind == "a":
            self._pos = self._size
        if self._can_write:
            _holdfast_files[self._id] = self
        return self

    def _check(self):
        if self.closed:
            raise ValueError("I/O operation on closed file" if self._is_binary else "I/O operation on closed file.")

    def _check_read(self, name):
        if self.closed:
            raise ValueError(f"{name} of closed file" if self._is_binary else "I/O operation on closed file.")
        if not self._can_read:
            _holdfast_unsupported(name if self._is_binary else "not readable")
        if self._problem and self._pos < self._size:
            self._pos = self._size
            raise UnicodeDecodeError(self._problem)
        self._has_read = True
        if self._is_fast:
            self._settle()
        if self._parts:
            self._join()

    def _settle(self):
        self._is_fast = False
        self._pos = self._ahead_at = self._ahead_end - sum([len(line) for line in self._ahead])

    def _join(self):
        if self._parts:
            self._data += self._empty.join(self._parts)
            self._parts = []

    def _fill(self):
        if self._failure is not None:
            raise self._failure
        if self._is_at_end:
            return False
        answer = _holdfast_file("next piece", self._path, self._offset, self._codec, self._errors)
        piece, count, self._is_at_end = answer
        self._ahead = []
        self._data = self._data[self._pos:] + piece
        self._offset += count
        self._pos = 0
        self._size = len(self._data)
        if not self._is_binary and self._newline is None and "\r" in piece:
            self._is_plain = False
        return True

    def _refill(self):
        if self._is_fast:
            self._settle()
        if self.closed or self._is_at_end:
            return
        try:
            while self._size - self._pos < 16_000_000 and not self._look_ahead() and self._line_end() >= self._size and self._fill():
                pass
        except NotImplementedError:
            pass
        except Exception as error:
            self._failure = error

    def _wait_for_piece(self):
        if self not in _holdfast_waiting:
            _holdfast_waiting.append(self)

    def read(self, size=-1):
        self._check_read("read")
        if self._is_large:
            if size is None or size < 0:
                raise OSError(f"{self.name!r} is too large to read at once; read it in pieces, such as f.read(1_000_000)")
            while self._size - self._pos < (size if self._is_binary else 2 * size) and self._fill():
                pass
        if size is None or size < 0:
            text = self._data[self._pos:]
            self._pos = max(self._pos, self._size)
            return text if self._is_plain else text.replace("\r\n", "\n").replace("\r", "\n")
        if self._is_plain:
            text = self._data[self._pos:self._pos + size]
            self._pos += len(text)
            return text
        text = ""
        while len(text) < size and self._pos < self._size:
            piece = self._data[self._pos:self._pos + size - len(text)]
            self._pos += len(piece)
            if piece[-1:] == "\r" and self._data[self._pos:self._pos + 1] == "\n":
                piece += "\n"
                self._pos += 1
            text += piece.replace("\r\n", "\n").replace("\r", "\n")
        return text

    def _line_end(self):
        if self._newline == "\r" or self._newline == "\r\n":
            found = self._data.find(self._newline, self._pos)
            return self._size if found < 0 else found + len(self._newline)
        feed = self._data.find(self._feed, self._pos)
        end = self._size if feed < 0 else feed + 1
        if self._is_binary or self._newline == "\n" or (self._newline is None and self._is_plain):
            return end
        back = self._data.find("\r", self._pos, end)
        if back < 0:
            return end
        return back + 2 if feed == back + 1 else back + 1

    def _look_ahead(self):
        self._ahead = []
        feed = self._newline if self._newline == "\r" or self._newline == "\r\n" else self._feed
        window = self._data[self._pos:self._pos + 1_000_000]
        is_end = self._pos + len(window) >= self._size
        if self._newline == "" or not self._is_plain:
            if not is_end and window[-1:] == "\r":
                window = window[:-1]
            if window.count("\r") != window.count("\r\n"):
                return False
        lines = window.split(feed)
        last = lines.pop()
        lines = [line + feed for line in lines]
        self._ahead_end = self._pos + len(window)
        if last and is_end and (self._is_at_end or not self._is_large):
            lines.append(last)
        else:
            self._ahead_end -= len(last)
        lines.reverse()
        self._ahead = lines
        self._ahead_at = self._pos
        self._was_fast = False
        return len(lines) > 0

    def readline(self, size=-1):
        self._check_read("readline" if self._is_binary else "read")
        if (size is None or size < 0) and ((self._ahead and self._ahead_at == self._pos) or self._look_ahead()):
            line = self._ahead.pop()
            self._pos += len(line)
            self._ahead_at = self._pos
            if not self._is_plain and line[-2:] == "\r\n":
                return line[:-2] + "\n"
            return line
        while self._is_large and self._line_end() >= self._size and self._fill():
            pass
        if self._pos >= self._size:
            return self._empty
        end = self._line_end()
        line = self._data[self._pos:end]
        if not self._is_plain:
            line = line.replace("\r\n", "\n").replace("\r", "\n")
        if size is not None and 0 <= size < len(line):
            self._pos += size
            return line[:size]
        self._pos = end
        return line

    def readlines(self, hint=-1):
        lines = []
        total = 0
        self._check_read("readline" if self._is_binary else "read")
        while True:
            line = self.readline()
            if not line:
                return lines
            lines.append(line)
            total += len(line)
            if hint is not None and 0 < hint < total:
                return lines

    def __iter__(self):
        self._check()
        if self._is_large and not self._ahead:
            self._wait_for_piece()
        return self

    def __next__(self):
        if self._is_fast and self._ahead:
            line = self._ahead.pop()
            if self._is_large and not self._ahead:
                self._wait_for_piece()
            return line if self._is_plain or line[-2:] != "\r\n" else line[:-2] + "\n"
        self._can_tell = self._is_binary
        try:
            line = self.readline()
        except NotImplementedError:
            raise OSError(f"{self.name!r} is too large to iterate over here; use `while line := f.readline():`")
        if not line:
            self._can_tell = True
            raise StopIteration
        if self._is_large and not self._ahead:
            self._wait_for_piece()
        if self._ahead and not self._was_fast:
            self._is_fast = self._was_fast = True
        return line

    def write(self, text):
        if self._is_binary:
            if not self._can_write:
                _holdfast_unsupported("write")
            if not isinstance(text, bytes):
                raise TypeError(f"a bytes-like object is required, not '{type(text).__name__}'")
            if self.closed:
                raise ValueError("write to closed file")
            self._put(text)
            return len(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._check()
        if not self._can_write:
            _holdfast_unsupported("not writable")
        length = len(text)
        if self._newline == "\r" or self._newline == "\r\n":
            text = text.replace("\n", self._newline)
        elif self._newline is None and self._is_plain and "\r" in text:
            self._is_plain = False
        if not self._is_utf8 and not text.isascii():
            try:
                _holdfast_file("check", text, self._codec, self._errors)
            except NotImplementedError:
                pass
        self._put(text)
        return length

    def _put(self, text):
        if self._is_fast:
            self._settle()
        if self._kind == "a":
            self._pos = self._size
        elif self._has_read and not self._is_binary:
            self._pos = max(self._pos, min(self._size, (self._pos // 8192 + 1) * 8192))
        self._has_read = False
        self._ahead = []
        self._is_dirty = True
        if self._pos == self._size:
            self._parts.append(text)
            if self._fresh is not None:
                self._fresh.append(text)
            self._size += len(text)
            self._pos = self._size
        elif text:
            self._join()
            self._fresh = None
            if self._pos > self._size:
                text = self._zero * (self._pos - self._size) + text
                self._pos = self._size
            self._replace(text)
        if self._can_hold or not self._is_unseen:
            self._hold()

    def _replace(self, text):
        before, after = self._data[:self._pos], self._data[self._pos:]
        if self._is_utf8 and not (text.isascii() and after.isascii()):
            try:
                after = after.encode()[len(text.encode()):].decode("utf-8")
            except UnicodeDecodeError:
                raise ValueError("this would overwrite half a character; open the file with 'r+b' to change its bytes")
        else:
            after = after[len(text):]
        if self._pos < self._size:
            self._written = -1
        self._data = before + text + after
        self._pos += len(text)
        self._size = len(self._data)

    def _hold(self):
        if not self._is_unseen:
            self._is_unseen = True
            _holdfast_unseen.append(self)
        if not self._can_hold:
            return
        self._writes += 1
        self._can_hold = self._writes == 1
        try:
            if self._can_hold:
                self._show()
            else:
                self._fresh = None
                _holdfast_file("hold", self._id)
        except NotImplementedError:
            pass

    def _show(self):
        if self.closed or not self._is_dirty:
            return
        is_whole = self._written < 0
        is_all = self._fresh is None or not (self._is_binary or self._is_utf8)
        if is_all:
            self._join()
        content = self._empty.join(self._fresh) if not is_all else self._data if is_whole else self._data[self._written:]
        options = (is_whole, is_all, self._sent(content), self._codec, self._errors, self._can_hold)
        _holdfast_file("show", self._id, self._path, *options)
        self._fresh = []

    def writelines(self, lines):
        self._check()
        self._can_hold = False
        for line in lines:
            self.write(line)

    def _cookie(self, pos):
        prefix = self._data[:pos]
        beyond = pos - len(prefix)
        if self._is_utf8 or self._codec in ("utf-16", "utf-32"):
            size = len(prefix.encode(self._codec)) if prefix else 0
        elif self._codec == "utf-8-sig":
            size = len(prefix.encode()) + 3 if prefix else 0
        else:
            size = len(prefix)
        return self._base + size + beyond

    def _index(self, cookie):
        if self._is_utf8 and not self._data.isascii():
            data = self._data.encode()
        elif self._codec in ("utf-16", "utf-32") and self._data:
            data = self._data.encode(self._codec)
        elif self._codec == "utf-8-sig":
            data = self._data.encode()
            cookie = max(0, cookie - 3)
        else:
            return cookie
        codec = "utf-8" if self._codec == "utf-8-sig" else self._codec
        try:
            return len(data[:cookie].decode(codec)) + max(0, cookie - len(data))
        except UnicodeDecodeError:
            raise ValueError(f"position {cookie} is inside a character; open the file in binary mode to go there")

    def _find_base(self):
        self._join()
        if not self._has_base:
            self._has_base = True
            self._base = _holdfast_file("size", self._id, self._path)
            if self._written:
                self._base -= self._cookie(self._written) - self._base

    def tell(self):
        if self.closed and self._is_binary:
            raise ValueError("I/O operation on closed file")
        self._check()
        if self._is_fast:
            self._settle()
        if not self._can_tell:
            raise OSError("telling position disabled by next() call")
        if self._is_large:
            if not self._is_binary:
                _holdfast_unsupported("a large text file has no tell() here; open it with 'rb'")
            return self._offset - (self._size - self._pos)
        self._find_base()
        return self._cookie(self._pos)

    def seek(self, offset, whence=0):
        if self.closed and self._is_binary:
            raise ValueError("seek of closed file")
        self._check()
        if self._is_fast:
            self._settle()
        if self._is_large:
            return self._seek_large(offset, whence)
        self._find_base()
        self._has_read = False
        if self._is_binary:
            if whence not in (0, 1, 2):
                raise ValueError(f"whence value {whence} unsupported")
            position = offset + (0 if whence == 0 else self._base + (self._pos if whence == 1 else self._size))
            if position < 0:
                raise OSError("[Errno 22] Invalid argument")
            self._check_released(position)
            self._pos = position - self._base
            return position
        if whence not in (0, 1, 2):
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        if whence and offset:
            _holdfast_unsupported(f"can't do nonzero {'cur' if whence == 1 else 'end'}-relative seeks")
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        if whence == 2:
            self._pos = self._size
        elif whence == 1:
            return self.tell()
        else:
            self._check_released(offset)
            self._pos = self._index(offset - self._base)
        self._can_tell = True
        return self._cookie(self._pos)

    def _seek_large(self, offset, whence):
        if not self._is_binary and (offset or whence):
            _holdfast_unsupported("a large text file can only seek(0) here; open it with 'rb'")
        if whence == 1:
            offset += self.tell()
        elif whence == 2:
            offset += _holdfast_file("size", self._id, self._path)
        if offset < 0:
            raise OSError("[Errno 22] Invalid argument")
        self._ahead = []
        self._data = self._empty
        self._pos = self._size = 0
        self._offset = offset
        self._is_at_end = False
        self._failure = None
        self._wait_for_piece()
        return offset

    def truncate(self, size=None):
        if self.closed and self._is_binary:
            raise ValueError("truncate of closed file")
        self._check()
        if not self._can_write:
            _holdfast_unsupported("truncate" if self._is_binary else "File not open for writing")
        if self._kind == "a" and not self._can_read:
            _holdfast_unsupported("this sandbox cannot truncate a file opened with 'a'; open it with 'r+'")
        if self._is_fast:
            self._settle()
        if size is None:
            size = self.tell()
        self._join()
        self._check_released(size)
        self._ahead = []
        end = self._index(size - self._base)
        if end != self._size:
            self._data = self._data[:end] + self._zero * (end - self._size)
            self._size = len(self._data)
            self._written = -1
            self._is_dirty = True
            self._fresh = None
            self._hold()
        return size

    def _sent(self, content):
        if not self._is_utf8 or len(content) < 29_000_000 or content.isascii():
            return content
        is_wide = _holdfast_find("[^\0-\uffff]", content) or (len(content) > 58_000_000 and _holdfast_find("[^\0-\xff]", content))
        return content.encode() if is_wide else content

    def _send(self, is_kept):
        self._join()
        is_whole = self._written < 0
        content = self._sent(self._data if is_whole else self._data[self._written:])
        if not self._is_binary and isinstance(content, bytes):
            _holdfast_file("hold", self._id)
        _holdfast_file("write", self._id, self._path, is_whole, content, self._codec, self._errors, is_kept)
        self._written = self._size
        self._can_hold = False
        self._is_dirty = False
        self._fresh = None

    def flush(self):
        if self.closed:
            raise ValueError("flush of closed file" if self._is_binary else "I/O operation on closed file.")
        if self._is_dirty:
            self._send(False)

    def _release(self):
        if self._kind in "wx" and not self._can_read and self._pos == self._size > 1_000_000:
            if self._is_binary or self._is_utf8:
                self._base = self._cookie(self._size)
                self._data = self._empty
                self._size = self._pos = self._written = 0
                self._is_released = True

    def _check_released(self, position):
        if self._is_released and position != self._cookie(self._size):
            _holdfast_unsupported("what an earlier run wrote cannot be changed here; open the file with 'r+'")

    def close(self):
        self._close(False)

    def _close(self, is_kept):
        if self.closed:
            return
        try:
            if self._is_dirty:
                self._send(is_kept)
        finally:
            self._end()

    def _end(self):
        self.closed = True
        self._is_dirty = False
        _holdfast_files.pop(self._id, None)
        self._data = self._empty
        self._parts = []
        self._ahead = []
        self._fresh = None

    def __enter__(self):
        self._check()
        self._can_hold = False
        return self

    def __exit__(self, kind, error, traceback):
        self._close(kind is not None)

    def readable(self):
        self._check()
        return self._can_read

    def writable(self):
        self._check()
        return self._can_write

    def seekable(self):
        self._check()
        return True

    def isatty(self):
        self._check()
        return False

    def fileno(self):
        _holdfast_unsupported("files of this sandbox have no file descriptor")

def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    if isinstance(file, bytes):
        path = file.decode("utf-8")
    elif isinstance(file, int):
        raise OSError("files of this sandbox have no file descriptors; open a file by its path")
    else:
        path = file if isinstance(file, str) else str(file)
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    for letter in mode:
        if letter not in "rwxabt+" or mode.count(letter) > 1:
            raise ValueError(f"invalid mode: {mode!r}")
    kinds = [letter for letter in mode if letter in "rwxa"]
    is_binary = "b" in mode
    if is_binary and "t" in mode:
        raise ValueError("can't have text and binary mode at once")
    if len(kinds) > 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if not kinds:
        raise ValueError("Must have exactly one of create/read/write/append mode and at most one plus")
    if is_binary and encoding is not None:
        raise ValueError("binary mode doesn't take an encoding argument")
    if is_binary and errors is not None:
        raise ValueError("binary mode doesn't take an errors argument")
    if is_binary and newline is not None:
        raise ValueError("binary mode doesn't take a newline argument")
    if not is_binary and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if newline not in (None, "", "\n", "\r", "\r\n"):
        raise ValueError(f"illegal newline value: {newline}")
    if opener is not None:
        raise ValueError("this sandbox does not support the opener argument of open()")
    if "\0" in path:
        raise ValueError("embedded null byte")
    if not path:
        raise FileNotFoundError("[Errno 2] No such file or directory: ''")
    path = path if path.startswith("/") else "/workspace/" + path
    while "/./" in path:
        path = path.replace("/./", "/")
    for other in list(_holdfast_files.values()):
        if other._path == path and other._is_dirty:
            other.flush()
    encoding = "UTF-8" if encoding is None or encoding == "locale" else encoding
    return _HoldfastFile(file, path, mode, kinds[0], is_binary, encoding, errors or "strict", newline)._start()

class _HoldfastPath:
    def __init__(self, path):
        self._path = path

    def open(self, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        return open(self._path, mode, buffering, encoding, errors, newline)

    def touch(self, mode=438, exist_ok=True):
        open(self._path, "a" if exist_ok else "x").close()

    def read_text(self, encoding=None, errors=None, newline=None):
        with open(self._path, "r", -1, encoding, errors, newline) as file:
            return file.read()

    def write_text(self, data, encoding=None, errors=None, newline=None):
        if not isinstance(data, str):
            raise TypeError(f"data must be str, not {type(data).__name__}")
        with open(self._path, "w", -1, encoding, errors, newline) as file:
            return file.write(data)

def _holdfast_path(value, here):
    return _HoldfastPath(value) if isinstance(value, _HoldfastPathType) else value

def print(*args, sep=" ", end="\n", file=None, flush=False):
    if isinstance(file, _HoldfastFile):
        file.write((" " if sep is None else sep).join([str(each) for each in args]) + ("\n" if end is None else end))
        if flush:
            file.flush()
    else:
        _holdfast_print(*args, sep=sep, end=end, file=file, flush=flush)

def _holdfast_refill():
    while _holdfast_waiting:
        _holdfast_waiting.pop()._refill()
    return False

def _holdfast_show():
    while _holdfast_unseen:
        file = _holdfast_unseen[-1]
        try:
            file._show()
        except NotImplementedError:
            return False
        file._is_unseen = False
        _holdfast_unseen.pop()
    return False

def _holdfast_forget():
    while _holdfast_unseen:
        _holdfast_unseen.pop()._is_unseen = False

def _holdfast_end_run():
    _holdfast_forget()
    for file in list(_holdfast_files.values()):
        if file._is_dirty:
            try:
                file.flush()
            except BaseException:
                file._end()
                raise
        file._release()
    return len(_holdfast_files) > 0

def _holdfast_discard():
    _holdfast_forget()
    names = []
    for file in list(_holdfast_files.values()):
        if file._is_dirty:
            names.append(file._path)
            file._end()
    return names
"""

_LINES = tuple(line.strip() for line in PRELUDE.split("\n"))
_FRAME = re.compile(
    r'^  File "[^"\n]*", line (?P<line>\d+), in [^\n]*\n(?P<shown>    (?P<source>[^\n]*)\n(?:    [ ~^]*\n)?)?',
    re.MULTILINE,
)


def without_prelude(traceback: str) -> str:
    """A traceback without the lines of the prelude: it ends where the code called a file object."""
    return _FRAME.sub(lambda frame: "" if _is_prelude(frame) else frame.group(), traceback)


def _is_prelude(frame: re.Match[str]) -> bool:
    number, source = int(frame["line"]), frame["source"]
    return source is not None and 0 < number <= len(_LINES) and _LINES[number - 1] == source.strip() != ""
