"""Files of saved results and models."""

from __future__ import annotations

import os
import pickle
from typing import Any

from . import _inertial
from .errors import Error

#: First bytes of a saved result.
_MAGIC = b"inertial-result-1\n"


def save(path: str | os.PathLike[str], thing: object) -> None:
    """Saves a result to a file."""
    _inertial.write_file(path, _MAGIC + pickle.dumps(thing, protocol=4))


class _Reader(pickle.Unpickler):
    """Unpickler that creates objects of this package only, so that a file cannot run other code."""

    def find_class(self, module: str, name: str) -> Any:
        package = __name__.partition(".")[0]
        if module.partition(".")[0] == package and "." not in name:
            found = super().find_class(module, name)
            if str(getattr(found, "__module__", "")).partition(".")[0] == package:
                return found
        raise Error(f"the file holds a {module}.{name}: it is not a saved result")


def read(path: str | os.PathLike[str]) -> Any:
    """Reads a file that :func:`save` wrote; returns ``None`` for other files."""
    with open(path, "rb") as file:
        return _Reader(file).load() if file.read(len(_MAGIC)) == _MAGIC else None
