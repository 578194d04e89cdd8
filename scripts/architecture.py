#!/usr/bin/env python3
"""Draws the crates, their modules and their imports into docs/figures/architecture.svg, from the source code.

scripts/architecture.py            writes the drawing
scripts/architecture.py --check    fails if the drawing is out of date, or if modules or files import each other in a circle

An arrow points from a module to one that imports it. Imports that follow from other arrows are left out.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import import_circles

ROOT = Path(__file__).resolve().parent.parent
FIGURE = ROOT / "docs/figures/architecture.svg"
# Crates in the order of their layers, with the module levels drawn as columns.
CRATES = ["inertial-dense", "inertial-libm", "inertial", "inertial-data", "inertial-app", "inertial-report", "inertial-cli", "inertial-py"]
WIDTH, LINE, GAP, MARGIN, PAD = 1240, 22, 8, 16, 12
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2937 }
  .name { font-weight: 600 }
  .note { fill: #6b7280; font-size: 11px; font-weight: 400 }
  .label { font-size: 12px }
  .crate { fill: #f3f4f6; stroke: #9ca3af }
  .module { fill: #ffffff; stroke: #60a5fa }
  .import { fill: none; stroke: #94a3b8; marker-end: url(#tip) }
  .tip { fill: #94a3b8 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e5e7eb } .note { fill: #9ca3af } .crate { fill: #1f2937; stroke: #6b7280 }
    .module { fill: #111827; stroke: #3b82f6 } .import { stroke: #64748b } .tip { fill: #64748b }
  }
"""


def code(path: Path) -> str:
    """Returns the source of a file without comments and unit tests."""
    text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests")[0]
    return re.sub(r"//.*", "", text)


def modules(crate: str) -> dict[str, tuple[int, set[str]]]:
    """Returns the top-level modules of a crate: lines of code, and modules that they import."""
    source = ROOT / "crates" / crate / "src"
    files: dict[str, list[Path]] = {}
    for path in sorted(source.rglob("*.rs")):
        name = path.relative_to(source).parts[0].removesuffix(".rs")
        if name not in ("lib", "main"):
            files.setdefault(name, []).append(path)
    out = {}
    for name, paths in files.items():
        text = "\n".join(code(path) for path in paths)
        # Paths, and the first words of lists: use crate::{a, b::c};
        found = set(re.findall(r"\bcrate::(\w+)", text))
        for group in re.findall(r"\bcrate::\{((?:[^{}]|\{[^{}]*\})*)\}", text):
            found |= set(re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group)))
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
        out[name] = (lines, (found & files.keys()) - {name})
    return out


def levels(imports: dict[str, set[str]], where: str) -> dict[str, int]:
    """Returns the length of the longest chain of imports below each name; refuses circles."""
    out: dict[str, int] = {}

    def level(name: str, path: tuple[str, ...]) -> int:
        if name in path:
            sys.exit(f"{where}: circle of imports {' -> '.join([*path[path.index(name):], name])}")
        if name not in out:
            out[name] = max((level(other, (*path, name)) + 1 for other in sorted(imports[name])), default=0)
        return out[name]

    for name in sorted(imports):
        level(name, ())
    return out


def reduced(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Returns the imports that do not follow from others, as pairs of the imported name and the importing one."""

    def reached(name: str) -> set[str]:
        return set().union(*({other} | reached(other) for other in imports[name])) if imports[name] else set()

    pairs = []
    for name in sorted(imports):
        indirect = set().union(*(reached(other) for other in imports[name])) if imports[name] else set()
        pairs += [(other, name) for other in sorted(imports[name] - indirect)]
    return pairs


def with_arrows(found: dict[str, tuple[int, set[str]]], top: int) -> tuple[list[str], int]:
    """Draws modules in columns by level, with arrows; returns the shapes and their height."""
    imports = {name: others for name, (_, others) in found.items()}
    level = levels(imports, "crates/inertial")
    columns = [sorted(n for n in level if level[n] == k) for k in range(max(level.values()) + 1)]
    step = (WIDTH - 2 * MARGIN - 2 * PAD) / len(columns)
    width, height = step - 16, 36
    tallest = max(len(column) for column in columns) * (height + GAP)
    place, out = {}, []
    for k, column in enumerate(columns):
        first = top + (tallest - len(column) * (height + GAP)) / 2
        for i, name in enumerate(column):
            x, y = MARGIN + PAD + k * step, first + i * (height + GAP)
            place[name] = (x, y)
            out.append(f'<rect class="module" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height}" rx="5"/>')
            out.append(f'<text class="label" x="{x + width / 2:.0f}" y="{y + 16:.0f}" text-anchor="middle">{name}</text>')
            lines = f"{found[name][0]:,} lines".replace(",", " ")
            out.append(f'<text class="note" x="{x + width / 2:.0f}" y="{y + 30:.0f}" text-anchor="middle">{lines}</text>')
    arrows = []
    for lower, upper in reduced(imports):
        (x0, y0), (x1, y1) = place[lower], place[upper]
        a, b, d = x0 + width, x1 - 4, max(18.0, 0.4 * (x1 - x0 - width))
        y0, y1 = y0 + height / 2, y1 + height / 2
        arrows.append(f'<path class="import" d="M{a:.0f} {y0:.0f}C{a + d:.0f} {y0:.0f} {b - d:.0f} {y1:.0f} {b:.0f} {y1:.0f}"/>')
    return arrows + out, int(tallest)


def wrapped(names: list[str]) -> list[str]:
    """Returns names in lines that fit into a box."""
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 150:
            lines.append(line)
            line = ""
        line += (" · " if line else "") + name
    return [*lines, line]


def drawing() -> str:
    depends = {}
    for crate in CRATES:
        manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8"))
        tables = [manifest, *manifest.get("target", {}).values()]
        depends[crate] = {n for table in tables for n in table.get("dependencies", {}) if n in CRATES}
    order = levels(depends, "Cargo.toml")
    for crate in CRATES:
        late = [other for other in depends[crate] if CRATES.index(other) > CRATES.index(crate)]
        if late:
            sys.exit(f"{crate} depends on {', '.join(late)} of a later layer")
    shapes, y = [], MARGIN
    for crate in sorted(CRATES, key=lambda c: (order[c], CRATES.index(c))):
        found = modules(crate)
        levels({name: others for name, (_, others) in found.items()}, f"crates/{crate}")
        top, box = y, len(shapes)
        y += PAD + LINE
        if crate == "inertial":
            inner, height = with_arrows(found, y)
            shapes += inner
            y += height + PAD - GAP
        elif found:
            for line in wrapped(sorted(found)):
                shapes.append(f'<text x="{MARGIN + PAD}" y="{y + 8}">{line}</text>')
                y += LINE
        below = [other for _, other in sorted((CRATES.index(o), o) for o in depends[crate])]
        note = f" <tspan class=\"note\">imports {', '.join(below)}</tspan>" if below else ""
        shapes.insert(box, f'<text class="name" x="{MARGIN + PAD}" y="{top + PAD + 10}">{crate}{note}</text>')
        shapes.insert(box, f'<rect class="crate" x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{y - top}" rx="8"/>')
        y += GAP
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN - GAP}" role="img" aria-label="crates, modules and their imports">'
    return "\n".join([head, f"<style>{STYLE}</style>", f"<defs>{tip}</defs>", *shapes, "</svg>", ""])


def without_counts(svg: str) -> str:
    """Removes the numbers of lines, which change with every commit."""
    return re.sub(r"[\d ]+ lines", "", svg)


def main() -> None:
    text = drawing()
    if sys.argv[1:] == ["--check"]:
        import_circles.main()
        if not FIGURE.exists() or without_counts(FIGURE.read_text(encoding="utf-8")) != without_counts(text):
            sys.exit("docs/figures/architecture.svg is out of date: scripts/architecture.py writes it")
    else:
        FIGURE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
