"""Progress of long work: a line on a terminal, a bar in a notebook, or a function of the caller."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable
from typing import Any, Union

#: Display of progress: a function that is called with the completed and the total work, ``True`` for a line or a bar, ``False`` for
#: none; ``None`` shows work that takes longer than a second on a terminal or in a notebook.
Progress = Union[bool, Callable[[Any, Any], None], None]

#: Time (s) after which progress is shown by default.
DELAY = 1.0


def shown(progress: Progress, title: str, unit: str = "") -> Any:
    """Returns the function that displays progress; ``None`` if it is not displayed."""
    if callable(progress):
        return progress
    if progress not in (None, True, False):
        raise TypeError(f"progress=: expected True, False, None or a function, not {type(progress).__name__}")
    notebook = "ipykernel" in sys.modules
    if progress is False or (progress is None and not (notebook or sys.stderr.isatty())):
        return None
    return (_Bar if notebook else _Line)(title, unit, DELAY if progress is None else 0.0)


class _Line:
    """Progress line on standard error."""

    def __init__(self, title: str, unit: str, after: float) -> None:
        self._title, self._unit, self._after = title, unit, after
        self._began = time.monotonic()
        self._open = False

    def __call__(self, done: float, total: float) -> None:
        """Shows the completed and the total work."""
        passed = time.monotonic() - self._began
        if passed < self._after:
            return
        amount = f"{done:g} of {total:g} {self._unit}" if self._unit else f"{100 * done / total:.0f} %"
        left = "done" if done >= total else f"about {_duration(passed * (total - done) / done)} left" if done > 0 else "begun"
        self._show(f"{self._title}: {amount}, {left}", done / total)
        self._open = done < total

    def _show(self, text: str, share: float) -> None:
        # Trailing spaces erase the rest of a longer text.
        print(f"\r{text:<60}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Ends the line."""
        if self._open:
            print(file=sys.stderr, flush=True)
            self._open = False


class _Bar(_Line):
    """Progress bar in a notebook."""

    _display: Any = None

    def _show(self, text: str, share: float) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

        content = HTML(f'<progress value="{share:.4f}" max="1"></progress> {html.escape(text)}')  # type: ignore[no-untyped-call,unused-ignore]
        if self._display is None:
            self._display = display(content, display_id=True)  # type: ignore[no-untyped-call,unused-ignore]
        else:
            self._display.update(content)

    def close(self) -> None:
        """Keeps the bar."""


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{hours:.1f} h" if hours >= 1 else f"{minutes:.0f} min" if minutes >= 2 else f"{seconds:.0f} s"
