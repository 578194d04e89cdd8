"""What the program's help says of options, for ``help()``."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeVar

from . import _inertial
from ._arguments import PROGRAM_ONLY

F = TypeVar("F", bound=Callable[..., Any])


def with_options(command: str, names: Container[str] | None = None) -> Callable[[F], F]:
    """Adds the options of a command, or those of them that are named, to the words of a function or class."""

    def add(documented: F) -> F:
        options = [(name.replace("-", "_"), told) for name, told in _inertial.options(command)]
        lines = [f"        {n}: {told}" for n, told in options if n not in PROGRAM_ONLY and (names is None or n in names)]
        documented.__doc__ = "\n".join([(documented.__doc__ or "").rstrip(), "", "    Options:", *lines])
        return documented

    return add
