#!/usr/bin/env python3
"""Finds circles of imports between the source files of each crate and of the Python package, and fails if there are any.

A name that a file re-exports counts as an import of the file that defines it. A Rust file may use items of the module file of its own
folder (`super::Options`): the module file declares it and calls it. Unit tests are not read.

scripts/import_circles.py
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "crates/inertial-py/python/inertial"

#: File of a tree: the names of its folders and its own, without those of module files. Imports: file -> imported files.
Name = tuple[str, ...]
Imports = dict[Name, set[Name]]

TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ \{")
USE = re.compile(r"(?m)^[ \t]*(pub(?:\([^)]*\))? )?use\s+([^;]+);")
ITEM = r"\b(?:fn|struct|enum|trait|type|const|static|mod|macro_rules!)\s+{}\b"


def expanded(tree: str) -> list[tuple[str, str]]:
    """Returns the paths of a `use` declaration, each with the name that it introduces."""
    group = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree.strip(), re.S)
    if group is None:
        path, _, alias = re.sub(r"\s+", " ", tree.strip()).partition(" as ")
        path = re.sub(r"(^|::)self$", "", path)
        return [(path, alias or path.rpartition("::")[2])]
    parts, depth, part = [], 0, ""
    for character in group[2] + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    found = [pair for part in parts if part.strip() for pair in expanded(part)]
    return [((group[1] + path).removesuffix("::"), alias or group[1].split("::")[-2]) for path, alias in found]


class RustFiles:
    """Source files of a crate, with their `use` declarations."""

    def __init__(self, source: Path) -> None:
        self.texts: dict[Name, str] = {}
        for path in sorted(source.rglob("*.rs")):
            parts = path.relative_to(source).with_suffix("").parts
            name = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
            self.texts[name] = re.sub(r"//.*", "", TESTS.split(path.read_text(encoding="utf-8"))[0])
        self.uses = {
            name: [(bool(public), path, alias) for public, tree in USE.findall(text) for path, alias in expanded(tree)]
            for name, text in self.texts.items()
        }

    def absolute(self, file: Name, path: str) -> Name | None:
        """Returns a path from the root of the crate; `None` for other crates."""
        parts = path.split("::")
        if parts[0] == "crate":
            return tuple(parts[1:])
        if parts[0] == "self":
            return (*file, *parts[1:])
        base = file
        while parts and parts[0] == "super":
            base, parts = base[:-1], parts[1:]
        return (*base, *parts) if path.startswith("super") or (*base, parts[0]) in self.texts else None

    def defining(self, file: Name, path: str, seen: frozenset[tuple[Name, str]] = frozenset()) -> set[Name]:
        """Returns the files that define what a path in a file refers to."""
        place = self.absolute(file, path)
        if place is None:
            return set()
        depth = max(k for k in range(len(place) + 1) if place[:k] in self.texts)
        module, rest = place[:depth], place[depth:]
        if not rest or (module, rest[0]) in seen:
            return {module}
        seen |= {(module, rest[0])}
        uses = self.uses[module]
        if rest[0] == "*":
            return {module}.union(*(self.defining(module, other, seen) for public, other, _ in uses if public))
        for _, other, alias in uses:
            if alias == rest[0]:
                return self.defining(module, other, seen) or {module}
        for _, other, _ in uses:
            if other.endswith("::*") and not re.search(ITEM.format(rest[0]), self.texts[module]):
                for found in self.defining(module, other, seen) - {module}:
                    if re.search(ITEM.format(rest[0]), self.texts[found]):
                        return {found}
        return {module}

    def imports(self) -> Imports:
        """Returns which files use items of which others."""
        out: Imports = {}
        for file, text in self.texts.items():
            paths = {path for public, path, _ in self.uses[file] if not public}
            local = {alias for _, _, alias in self.uses[file]}
            body = USE.sub("", text)
            paths |= set(re.findall(r"(?<![\w:])(?:crate|super|self)(?:::\w+)+", body))
            paths |= {p for p in re.findall(r"(?<![\w:.])[a-z_]\w*(?:::\w+)+", body) if p.split("::")[0] not in local}
            found = set().union(*(self.defining(file, path) for path in paths))
            out[file] = {other for other in found if file[: len(other)] != other}
        return out


def python_imports(package: Path) -> Imports:
    """Returns which files of a Python package import which others, those inside functions and for types included."""
    trees: dict[Name, ast.Module] = {}
    packages: set[Name] = set()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").parts
        if name[-1] == "__init__":
            name = name[:-1]
            packages.add(name)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))

    def found(file: Name, tree: ast.AST) -> list[tuple[str, Name]]:
        """Returns the names that a file imports, each with its path."""
        out = []
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = file[: len(file) - node.level + (file in packages)]
                base += tuple(node.module.split(".")) if node.module else ()
                out += [(alias.asname or alias.name, (*base, alias.name)) for alias in node.names]
        return out

    exports = {name: dict(found(name, tree)) for name, tree in trees.items() if name in packages}

    def defining(path: Name) -> Name | None:
        if path in trees:
            return path
        module = path[:-1]
        if module in exports and path[-1] in exports[module]:
            return defining(exports[module][path[-1]])
        return module if module in trees else None

    out: Imports = {}
    for file, tree in trees.items():
        others = {defining(path) for _, path in found(file, tree)} - {None, file}
        # An `__init__.py` only re-exports names, which `defining` follows.
        out[file] = set() if file in packages else {other for other in others if other is not None}
    return out


def circles(imports: Imports) -> list[list[Name]]:
    """Returns the groups of files that import each other, directly or through others."""

    def reached(start: Name) -> set[Name]:
        out: set[Name] = set()
        rest = [start]
        while rest:
            new = imports.get(rest.pop(), set()) - out
            out |= new
            rest += new
        return out

    all_reached = {name: reached(name) for name in imports}
    groups = {frozenset(o for o in all_reached[n] if n in all_reached.get(o, ())) for n in imports if n in all_reached[n]}
    return sorted(sorted(group) for group in groups)


def report() -> list[str]:
    """Returns a line for each import that is part of a circle."""
    trees = {f"crates/{source.parent.name}/src": RustFiles(source).imports() for source in sorted(ROOT.glob("crates/*/src"))}
    trees[str(PACKAGE.relative_to(ROOT))] = python_imports(PACKAGE)
    lines = []
    for where, imports in trees.items():
        for group in circles(imports):
            for name in group:
                others = ", ".join("/".join(other) for other in sorted(imports[name] & set(group)))
                lines.append(f"{where}: circle of imports: {'/'.join(name)} uses {others}")
    return lines


def main() -> None:
    lines = report()
    if lines:
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main()
