"""Input files: paths, patterns, and remote addresses."""

from __future__ import annotations

import errno
import glob
import os
import re
from typing import Any

from .errors import Error, LogError


def path_of(value: Any, what: str, expected: str) -> str:
    """Returns a path as text."""
    try:
        return os.fspath(value)  # type: ignore[no-any-return]
    except TypeError:
        raise TypeError(f"a {what} of type {type(value).__name__}: expected {expected}") from None


def existing(path: str) -> str:
    """Returns the path; raises ``FileNotFoundError`` if there is no such file."""
    if path != "-" and not path.startswith("builtin:") and not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
    return path


def text_of(path: str | os.PathLike[str], kind: type[Error] = Error) -> str:
    """Reads the text of a file, with unchanged line ends."""
    name = existing(os.fspath(path))
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise kind(f"{name}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise kind(f"{name}: is not UTF-8 text: byte {error.start} is invalid") from None


def model_text(path: str | os.PathLike[str], kind: type[Error] = Error) -> str | None:
    """Reads the text of a model; returns ``None`` if it is not UTF-8 text."""
    name = existing(os.fspath(path))
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise kind(f"{name}: {(error.strerror or str(error)).lower()}") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    declared = re.match(r"""\s*<\?xml[^>]*encoding=["']([^"']*)""", text)
    other = declared is not None and declared[1].lower() not in ("utf-8", "utf8", "us-ascii", "ascii")
    return None if other else text


def stands_alone(text: str) -> bool:
    """Returns whether the text of a model refers to no other files, whose paths would depend on the path of the model."""
    return not text.startswith(("#usda", "PXR-USDC", "PK")) and "<include" not in text and "xmlns:xacro" not in text


def is_address(path: str) -> bool:
    """Returns whether a path is a remote address (``s3://…``)."""
    return "://" in path


def expanded(path: str) -> list[str]:
    """Returns the files that match a pattern (``logs/*.parquet``), sorted; a list with the path itself if it is not a pattern."""
    if not glob.has_magic(path) or os.path.exists(path):
        return [path]
    if is_address(path):
        import fsspec

        system, inner = fsspec.core.url_to_fs(path)
        found = [system.unstrip_protocol(name) for name in sorted(system.glob(inner))]
    else:
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file matches this pattern", path)
    return found


def fetched(path: str, folder: str) -> str:
    """Copies a file that fsspec supports to a local folder and returns the path of the copy."""
    try:
        import fsspec

        system, inner = fsspec.core.url_to_fs(path)
        local = os.path.join(folder, os.path.basename(inner) or "log")
        system.get_file(inner, local)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "there is no such file", path) from None
    # Each store has its own exceptions; all of them mean that the log cannot be read.
    except Exception as error:
        raise LogError(f"{path}: cannot be opened: {str(error) or type(error).__name__}") from None
    return local
