"""Expands xacro files with the Python package xacro, as a reference for the tests.

usage: scripts/oracle_xacro.py COUNT SEED   prints generated files and their expansions as JSON
       scripts/oracle_xacro.py FOLDER ...   prints the expansions of the .xacro files in folders as JSON

Each case has the files by name (the first is the model), the arguments, and the expansion (null if xacro fails).
"""

import contextlib
import io
import json
import os
import pathlib
import random
import sys
import tempfile
import types

try:
    import xacro
    import yaml  # noqa: F401
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)


def stub_packages(roots):
    """Makes $(find PACKAGE) search folders by name, as the program does."""
    module = types.ModuleType("ament_index_python.packages")

    def folder(package):
        for root in roots:
            for found in sorted(pathlib.Path(root).rglob(package)):
                if found.is_dir():
                    return str(found)
        raise KeyError(package)

    module.get_package_share_directory = folder
    sys.modules["ament_index_python"] = types.ModuleType("ament_index_python")
    sys.modules["ament_index_python.packages"] = module


def expanded(path, arguments):
    """Returns the expansion as XML, or None if xacro fails."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return xacro.process_file(str(path), mappings=dict(arguments)).toxml()
        except BaseException as error:  # noqa: BLE001
            if isinstance(error, KeyboardInterrupt):
                raise
            return None


class Writer:
    """Generates one random xacro file."""

    def __init__(self, rng):
        self.rng = rng
        self.names = []
        self.texts = []
        self.macros = []

    def number(self):
        kinds = ["{}", "{}.5", "0.{}", "{}e-3", "1e{}", "{}.", "0.00000{}", "{}00000.0"]
        return self.rng.choice(kinds).format(self.rng.randint(0, 9))

    def expression(self, depth=0):
        """Returns a random numeric expression."""
        rng = self.rng
        if depth > 3 or rng.random() < 0.3:
            return rng.choice([self.number(), self.number(), "pi", *self.names, *self.names])
        a, b = self.expression(depth + 1), self.expression(depth + 1)
        return rng.choice([
            f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"({a}) / (python.abs({b}) + 1)", f"({a} - {b})", f"-({a})", f"sin({a})**2",
            f"sin({a})", f"cos({a})", f"radians({a})", f"degrees({a})", f"sqrt(({a})**2)", f"atan2({a}, {b})",
            f"min({a}, {b})", f"max({a}, {b}, 1)", f"({a} if {a} > {b} else {b})", f"int({a}) % 7", f"int({a}) // 3",
            f"round({a}, 3)", f"[{a}, {b}, 3][{rng.randint(-3, 2)}]", f"math.floor({a})", f"python.abs({a})",
            f"len([{a}, {b}])", f"python.sum([{a}, {b}])",
            f"[x * 2 for x in range(4) if x != 1][1]", f"dict(a={a}, b={b})['b']", f"float('{self.number()}')",
            f"(not {a} > {b}) * 1", f"({a} == {b}) + 0", f"({a} <= {b} and {a} or 5)", f"math.hypot({a}, {b})",
            f"int(cos({a}) * 9) ** 2", f"tan({a}) * 0.1", f"exp(-sin({a}))", f"fabs({a})", f"(1 << {rng.randint(0, 9)})",
        ])

    def text(self):
        """Returns a random string expression."""
        rng = self.rng
        word = rng.choice(["left", "right_arm", "a b c", "Elbow", "x"])
        held = rng.choice([f"'{word}'", *(f"str({name})" for name in self.texts)])
        return rng.choice([
            held, f"{held} + '_link'", f"str({self.expression()})", f"{held}.upper()", f"{held}.split('_')[0]",
            f"{held}[0:2]", f"{held}[::-1]", f"{held}.replace('e', 'o')", f"'%02d' % {rng.randint(0, 30)}",
            f"'%.3f' % {self.number()}", f"'_'.join(['a', {held}])", f"{held} * 2", f"'{word}' if {held} == '{word}' else 'no'",
            f"str([1, 2.5, 'x', True, None])", f"xacro.tokenize('a, b;c')[1]", f"len({held})", f"{held}.startswith('l')",
            f"'l' in {held}", f"str((1, 2))", f"str(dict(a=1))", f"{held}.strip('l')", f"sorted(['b', 'a'])[0]",
            f"list(map(float, '1 2 3'.split()))[1]", f"{held}.count('t')", f"max('a', {held})",
        ])

    def value(self):
        """Returns a random attribute value."""
        rng = self.rng
        return rng.choice([
            lambda: "${%s}" % self.expression(), lambda: "${%s}" % self.expression(), lambda: "${%s}" % self.text(),
            lambda: "${%s} ${%s} 0" % (self.expression(), self.expression()), lambda: "$(arg side)_x",
            lambda: "${'$(arg side)'}", lambda: "$(optenv NOT_SET_HERE some words)", lambda: "pre_${%s}" % self.text(),
            lambda: self.number(), lambda: "true", lambda: "$(eval size * 2 + 1)", lambda: "${xacro.arg('side')}",
        ])().replace("<", "&lt;").replace('"', "'")

    def element(self, depth, count):
        """Returns a random element; its attributes are generated before its content."""
        tag = f"e{self.rng.randint(0, 9)}"
        start = f'<{tag} a="{self.value()}" b="{self.value()}">'
        return f"{start}{self.content(depth, count)}</{tag}>"

    def property(self):
        rng = self.rng
        name = f"p{rng.randint(0, 30)}"
        extra = rng.choice(["", "", "", ' scope="global"', ' lazy_eval="false"'])
        if rng.random() < 0.6:
            value, known = self.expression(), self.names
        else:
            value, known = self.text(), self.texts
        if any(name in own for own in (self.names, self.texts)):
            return ""
        value = "${%s}" % value if rng.random() < 0.8 else self.number() if known is self.names else "some_text"
        kind = "default" if rng.random() < 0.2 and not extra else "value"
        known.append(name)
        value = value.replace("<", "&lt;").replace('"', "'")
        return f'<xacro:property name="{name}" {kind}="{value}"{extra}/>'

    def macro(self):
        name = f"m{len(self.macros)}"
        inner = Writer(self.rng)
        inner.macros = list(self.macros)
        inner.names = ["n", "k", "f", *self.names[:2]]
        inner.texts = ["s"]
        self.macros.append(name)
        body = inner.content(1, 3)
        params = f"n k:=2.5 s:='a b' f:=^|{self.rng.choice(['3', '${1 + 2}'])} *one **many"
        return (f'<xacro:macro name="{name}" params="{params}">{body}<xacro:insert_block name="one"/>'
                f'<w><xacro:insert_block name="many"/></w></xacro:macro>')

    def call(self):
        if not self.macros:
            return ""
        name = self.rng.choice(self.macros)
        extra = self.rng.choice(["", ' k="${1 + 1}"', ' s="text"', ' f="7"'])
        inside = f'{self.element(9, 0)}<many>{self.element(9, 0)}<c d="1"/></many>'
        if self.rng.random() < 0.2:
            return f'<xacro:call macro="${{\'{name}\'}}" n="{self.number()}"{extra}>{inside}</xacro:call>'
        return f'<xacro:{name} n="{self.number()}"{extra}>{inside}</xacro:{name}>'

    def condition(self, depth):
        tag = self.rng.choice(["if", "unless"])
        test = self.rng.choice(["true", "0", "${%s > 1}" % self.expression(), "${%s}" % self.expression(), "$(arg flag)"])
        test = test.replace("<", "&lt;").replace('"', "'")
        hidden = Writer(self.rng)
        hidden.names, hidden.texts, hidden.macros = list(self.names), list(self.texts), list(self.macros)
        return f'<xacro:{tag} value="{test}">{hidden.content(depth + 1, 2)}</xacro:{tag}>'

    def content(self, depth, count):
        out = []
        for _ in range(count):
            roll = self.rng.random()
            if roll < 0.3 or depth > 4:
                out.append(self.element(depth + 1, 0 if depth > 3 else self.rng.randint(0, 2)))
            elif roll < 0.6:
                out.append(self.property())
            elif roll < 0.75:
                out.append(self.condition(depth))
            elif roll < 0.85:
                out.append(self.call())
            elif roll < 0.9:
                out.append(f"<t>{self.value()}</t>")
            elif roll < 0.95:
                out.append(f'<xacro:element xacro:name="e_${{1 + 1}}" q="{self.value()}"/>')
            else:
                out.append(f'<h><xacro:attribute name="z" value="v {self.value()}"/></h>')
        return "".join(out)


ROBOT = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{}</robot>'


def generated(rng):
    """Returns the files of one case, the model first."""
    writer = Writer(rng)
    head = '<xacro:arg name="side" default="left"/><xacro:arg name="size" default="3"/><xacro:arg name="flag" default="true"/>'
    if rng.random() < 0.3:
        head += ('<xacro:include filename="sub/part.xacro" ns="part"/><xacro:part.rod l="2"/><v a="${part.radius}"/>'
                 '<xacro:include filename="sub/flat.xacro"/><v a="${flat_value}"/><xacro:include filename="no.xacro" optional="true"/>')
    if rng.random() < 0.3:
        head += ('<xacro:property name="data" value="${xacro.load_yaml(\'sub/values.yaml\')}"/>'
                 '<y a="${data.limits.elbow.upper}" b="${data[\'names\'][1]}" c="${data.list}" d="${data.limits}"/>')
    head += '<escaped a="$${kept} $$$(kept)" b="5$"/>'
    body = head + "".join(writer.macro() if rng.random() < 0.15 else writer.content(0, 2) for _ in range(rng.randint(3, 12)))
    number, other = writer.number(), writer.number()
    return {
        "model.xacro": ROBOT.format(body),
        "sub/part.xacro": ROBOT.format(
            f'<xacro:property name="radius" value="{number}"/><xacro:macro name="rod" params="l r:=^|1">'
            '<rod v="${l * radius}" r="${r}"/><xacro:property name="made" value="${l}" scope="parent"/></xacro:macro><plain/>'),
        "sub/flat.xacro": ROBOT.format(f'<xacro:property name="flat_value" value="${{{other} * 2}}"/><xacro:include filename="deep.xacro"/>'),
        "sub/deep.xacro": ROBOT.format('<deep a="$(arg side)"/>'),
        "sub/values.yaml": (f"limits: &l\n  elbow: {{lower: !degrees -90, upper: !degrees {rng.randint(1, 180)}}}\n  fast: yes\n"
                            f"names: [a, 'b', \"c\"]\nlist: [1, 2.5, 1e3, 1.0e+3, 0x10, 010, ~, on, text, -.5]\nsame: *l\nvalue: {number}\n"),
    }


def main():
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        stub_packages([])
        cases = []
        rng = random.Random(int(sys.argv[2]))
        for _ in range(int(sys.argv[1])):
            files = generated(rng)
            arguments = rng.choice([{}, {}, {"side": "right_"}, {"size": "4", "flag": "false"}])
            with tempfile.TemporaryDirectory() as folder:
                for name, text in files.items():
                    path = pathlib.Path(folder, name)
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text)
                before = os.getcwd()
                os.chdir(folder)
                cases.append({"files": files, "arguments": arguments, "expected": expanded("model.xacro", arguments)})
                os.chdir(before)
        print(json.dumps(cases))
        return
    roots = sys.argv[1:]
    stub_packages(roots)
    paths = sorted({str(path) for root in roots for path in pathlib.Path(root).rglob("*.xacro")})
    print(json.dumps([{"path": path, "expected": expanded(path, {})} for path in paths]))


main()
