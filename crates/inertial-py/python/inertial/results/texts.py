"""Results of ``columns`` and ``export``."""

from __future__ import annotations

from typing import Any, ClassVar

from .._result import Named, Result
from .._tables import Table


class Column(Result):
    """Column of a log, with the quantity as which it is recognized."""

    name: str
    target: str | None
    used: bool | None
    unit: str | None
    reason: str
    first: float | None
    least: float | None
    greatest: float | None

    def _headline(self) -> str:
        taken = f"{self.target}{f' in {self.unit}' if self.unit else ''}" if self.target else "not used"
        return f"{self.name}: {taken} ({self.reason})"


class Columns(Result):
    """Columns of a log.

    ``map`` is an equivalent column map in TOML; ``missing`` describes the columns that the model requires and the log lacks.
    """

    log: str
    columns: Named[Column]
    map: str
    rows: int
    all_rows: bool
    missing: str | None
    _parts: ClassVar[dict[str, type[Result]]] = {"columns": Column}
    _frame = "columns"

    def _headline(self) -> str:
        used = sum(column.target is not None and column.used is not False for column in self.columns)
        missing = f"; {self.missing}" if self.missing else ""
        return f"{self.log}: {len(self.columns)} columns, {used} used{missing}"

    def _tables(self) -> list[Table]:
        rows = [[c.name, c.target or "", c.unit or "", c.reason] for c in self.columns]
        return [Table(["column", "taken as", "unit", "because"], rows)]


class ExportedFile(Result):
    """Exported text with the name of its file."""

    name: str
    text: str

    def _headline(self) -> str:
        return f"{self.name}: {len(self.text.splitlines())} lines"


class Export(Result):
    """Texts for a controller, a simulator or a program."""

    to: str
    files: Named[ExportedFile]
    load: dict[str, Any] | None
    operations: list[dict[str, Any]] | None
    warnings: list[str]
    _parts: ClassVar[dict[str, type[Result]]] = {"files": ExportedFile}
    _frame = "files"

    def _headline(self) -> str:
        return f"{self.to}: {', '.join(file['name'] for file in self._data['files'])}"
