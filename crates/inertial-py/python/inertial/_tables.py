"""Tables of results, as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


class Table:
    """Table with a header and lines of text below; columns of numbers are right-aligned."""

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[str]], below: Sequence[str] = ()) -> None:
        # Columns without content are left out.
        kept = [k for k in range(len(header)) if any(row[k] not in {"", "-"} for row in rows)]
        self.header = [header[k] for k in kept]
        self.rows = [[row[k] for k in kept] for row in rows]
        self.below = list(below)

    def text(self) -> str:
        """Formats the table as text, with spaces between columns."""
        rows = [self.header, *self.rows]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self.header))]
        right = [k > 0 and all(_is_number(row[k]) for row in self.rows) for k in range(len(self.header))]
        lines = []
        for row in rows if self.rows else []:
            cells = zip(row, widths, right, strict=True)
            lines.append("  ".join(x.rjust(w) if r else x.ljust(w) for x, w, r in cells).rstrip())
        return "\n".join([*lines, *self.below])

    def html(self) -> str:
        """Formats the table as HTML, for notebooks."""
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in row) + "</tr>" for row in self.rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        return table + "".join(f"<p>{html.escape(line)}</p>" for line in self.below)


def _is_number(cell: str) -> bool:
    """Returns whether a cell consists of numbers, their errors and units."""
    return all(part in {"-", "±", "%"} or part[-1].isdigit() for part in cell.split())


def show(value: Any, digits: int = 5) -> str:
    """Formats a value in few characters; ``-`` for ``None``."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, dict):
        return combination(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return " ".join(show(x, digits) for x in value)
    return str(value)


def residual(x: float | None) -> str:
    """Formats a relative residual in percent; a dash if there is none, because the measured force is zero."""
    return "–" if x is None else f"{100 * x:.2f} %"


def percent(value: float | None) -> str:
    """Formats a fraction in percent."""
    if value is None:
        return "-"
    share = 100 * value
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"


def with_error(value: Any, error: Any, digits: int = 5) -> str:
    """Formats one or several numbers, with their standard errors if there are any."""
    return show(value, digits) if error is None else f"{show(value, digits)} ± {show(error, 2)}"


def combination(factors: dict[str, float]) -> str:
    """Formats a linear combination: ``a - 2 b`` for the factors 1 of a and -2 of b."""
    out = ""
    for name, factor in factors.items():
        sign = ("-" if factor < 0 else "") if not out else (" - " if factor < 0 else " + ")
        size = "" if abs(factor) == 1 else f"{abs(factor):.5g} "
        out += f"{sign}{size}{name}"
    return out
