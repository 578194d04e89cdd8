"""Errors by kind. All are :class:`inertial.Error`, which is a ``ValueError``.

A wrong type raises ``TypeError``, a file that does not exist ``FileNotFoundError``, as everywhere in Python.
"""

from __future__ import annotations

from ._inertial import Error, LogError, ModelError, OptionError


class FailedLogs(LogError):
    """Several logs cannot be used; ``failures`` has the message of each."""

    def __init__(self, message: str, failures: dict[str, str] | None = None) -> None:
        super().__init__(message)
        #: The message of each log by its name.
        self.failures = failures or {}

    def __reduce__(self) -> tuple[type[FailedLogs], tuple[str, dict[str, str]]]:
        return FailedLogs, (str(self), self.failures)


__all__ = ["Error", "FailedLogs", "LogError", "ModelError", "OptionError"]
