"""Exceptions of the package. All are subclasses of :class:`inertial.Error`, which is a ``ValueError``.

As usual in Python, a wrong type raises ``TypeError``, and a missing file raises ``FileNotFoundError``.
"""

from __future__ import annotations

from ._inertial import Error, LogError, ModelError, OptionError


class FailedLogs(LogError):
    """Raised if several logs cannot be used; ``failures`` has the message of each."""

    def __init__(self, message: str, failures: dict[str, str] | None = None) -> None:
        super().__init__(message)
        #: Message of each log, by the name of the log.
        self.failures = failures or {}

    def __reduce__(self) -> tuple[type[FailedLogs], tuple[str, dict[str, str]]]:
        return FailedLogs, (str(self), self.failures)


__all__ = ["Error", "FailedLogs", "LogError", "ModelError", "OptionError"]
