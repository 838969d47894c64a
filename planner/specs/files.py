"""Whole texts from files and standard input, and whole texts to files."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from planner.errors import SpecError
from planner.loader import MAX_BYTES

STDIN = "<stdin>"
"""Origin of what was read from standard input."""


def read_text(source: str, limit: int = MAX_BYTES) -> tuple[str, str]:
    """Return the text of a file, or of standard input for ``-``, and its name for messages.

    Args:
        source: the file, or ``-``.
        limit: [bytes] that are read at most.

    Raises:
        SpecError: there is no such file, it is too large, or it is no text.

    """
    origin = STDIN if source == "-" else source
    data = _stdin_bytes(limit) if source == "-" else _file_bytes(source, limit)
    if len(data) > limit:
        usual = "a specification is a few KiB of text" if limit == MAX_BYTES else "split it"
        raise SpecError.of(origin, f"is larger than {limit // 2**20} MiB; {usual}")
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise SpecError.of(origin, "is UTF-16; save it as UTF-8")
    try:
        return data.decode("utf-8-sig"), origin
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte {data[error.start]:#04x}"
        raise SpecError.of(f"{origin}:{line}", f"is not UTF-8 text ({byte}); save it as UTF-8") from None


def _stdin_bytes(limit: int) -> bytes:
    """Return what stands on standard input, cut just beyond the limit."""
    if sys.stdin is None or sys.stdin.closed:
        raise SpecError.of(STDIN, "is closed; give a file instead of `-`")
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer.read(limit + 1)
    return sys.stdin.read(limit + 1).encode()


def _file_bytes(source: str, limit: int) -> bytes:
    """Return what stands in a file, cut just beyond the limit."""
    try:
        with Path(source).open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        raise SpecError.of(source, f"no such file{_nearest_file(source)}") from None
    except IsADirectoryError:
        raise SpecError.of(source, "is a folder; name a file in it") from None
    except PermissionError:
        raise SpecError.of(source, "may not be read; change its permissions or choose another file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SpecError.of(source[:200], f"cannot be read ({reason}); check the path") from None


def _nearest_file(source: str) -> str:
    """Return a suggestion from the same folder, or a general remedy."""
    from difflib import get_close_matches

    path = Path(source)
    names: list[str] = []
    with suppress(OSError, ValueError):
        names = sorted(entry.name for entry in path.parent.iterdir())
    near = get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else "; check the path, or write `-` for standard input"


def write_whole(path: str, text: str | bytes) -> None:
    """Write text (as UTF-8) or bytes to `path`: all of it stands there afterwards, or nothing has changed.

    Raises:
        SpecError: the file cannot be written.

    """
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(_bytes(text))
            return
        _replace(target, _bytes(text))
    except IsADirectoryError:
        raise SpecError.of(path, "is a folder; name a file in it") from None
    except (FileNotFoundError, NotADirectoryError):
        raise SpecError.of(path, f"there is no folder {Path(path).parent}; create it or write elsewhere") from None
    except (PermissionError, ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError.of(path, f"cannot be written ({reason}); choose another path") from None


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _replace(target: Path, data: bytes) -> None:
    """Write beside `target`, then rename, and leave nothing behind on failure."""
    if target.is_dir():
        raise IsADirectoryError
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
