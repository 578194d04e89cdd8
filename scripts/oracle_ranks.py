#!/usr/bin/env python3
"""Checks `inertial analyze` on open chains against an independent high-precision computation.

Generates random trees with 120 digits (all joint types, mimic joints, rotors, telescopes, arbitrary link frames), samples their regressor
at random states, and eliminates with full pivoting. Compares rank, base parameters and combinations with the result of the program for
the same mechanism, written in double precision or rounded to a few decimals.

usage: oracle_ranks.py PROGRAM [--count N] [--seed S] [--decimals D]     (needs mpmath; gmpy2 makes it fast)
"""
import argparse
import json
import os
import random
import subprocess
import tempfile

from mpmath import mp, mpf, matrix, cos, sin, pi, sqrt, acos, atan2

mp.dps = 120
NAMES = "m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz".split()
PAIRS = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
ZERO = mpf(0)


def vec(*x):
    return [mpf(v) for v in x]


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def add(a, b, f=1):
    return [x + f * y for x, y in zip(a, b)]


def times(m, v):
    return [dot(r, v) for r in m]


def transposed(m):
    return [list(c) for c in zip(*m)]


def product(a, b):
    bt = transposed(b)
    return [[dot(r, c) for c in bt] for r in a]


def about(axis, angle):
    c, s = cos(angle), sin(angle)
    x, y, z = axis
    k = [[ZERO, -z, y], [z, ZERO, -x], [-y, x, ZERO]]
    k2 = product(k, k)
    return [[(1 if i == j else 0) + s * k[i][j] + (1 - c) * k2[i][j] for j in range(3)] for i in range(3)]


EYE = [vec(1, 0, 0), vec(0, 1, 0), vec(0, 0, 1)]


def rpy(r, p, y):
    return product(product(about(EYE[2], y), about(EYE[1], p)), about(EYE[0], r))


def to_rpy(m):
    if m[2][1] ** 2 + m[2][2] ** 2 < mpf(10) ** -100:          # a pitch of 90 degrees: the yaw is arbitrary
        down = -1 if m[2][0] > 0 else 1
        return [atan2(down * m[0][1], m[1][1]), down * pi / 2, ZERO]
    return [atan2(m[2][1], m[2][2]), atan2(-m[2][0], sqrt(m[2][1] ** 2 + m[2][2] ** 2)), atan2(m[1][0], m[0][0])]


class Piece:
    """One degree of freedom: a hinge, screw or slider, optionally with the body that it moves."""

    def __init__(self, parent, rotation, translation, kind, axis, coordinate, ratio=1, offset=0, pitch=0, column=None, one=False):
        self.parent, self.rotation, self.translation = parent, rotation, translation
        self.kind, self.axis, self.coordinate = kind, axis, coordinate
        self.ratio, self.offset, self.pitch = mpf(ratio), mpf(offset), mpf(pitch)
        self.column, self.one = column, one


def rows(pieces, nv, width, gravity, regime, measured, torques, draw):
    """Returns the rows of the regressor at a random state."""
    q, v, a = ([draw() for _ in range(nv)] for _ in range(3))
    if regime == "static":
        v, a = [ZERO] * nv, [ZERO] * nv
    fall = [ZERO] * 3 if regime == "kinetic" else [-g for g in gravity]
    state = []
    for p in pieces:
        R, t = p.rotation, p.translation
        x = p.ratio * q[p.coordinate] + p.offset
        if p.kind == "hinge":
            R = product(R, about(p.axis, x))
            t = add(t, times(p.rotation, [p.pitch * x * u for u in p.axis]))
            w, l = p.axis, [p.pitch * u for u in p.axis]
        else:
            t = add(t, times(R, [x * u for u in p.axis]))
            w, l = [ZERO] * 3, p.axis
        w, l = [p.ratio * u for u in w], [p.ratio * u for u in l]
        up = state[p.parent] if p.parent is not None else None
        Rt = transposed(R)
        def pull(m):
            return times(Rt, m[0]), times(Rt, add(m[1], cross(t, m[0]), -1))
        pv = pull(up["v"]) if up else ([ZERO] * 3, [ZERO] * 3)
        pa = pull(up["a"]) if up else ([ZERO] * 3, times(Rt, fall))
        qd, qdd = v[p.coordinate], a[p.coordinate]
        jv = ([qd * u for u in w], [qd * u for u in l])
        sv = (add(pv[0], jv[0]), add(pv[1], jv[1]))
        sa = (add(add(pa[0], [qdd * u for u in w]), cross(sv[0], jv[0])),
              add(add(add(pa[1], [qdd * u for u in l]), cross(sv[0], jv[1])), cross(sv[1], jv[0])))
        state.append(dict(R=R, t=t, v=sv, a=sa, s=(w, l)))
    out = {}
    for i, p in enumerate(pieces):
        if p.column is None:
            continue
        st = state[i]
        w, al = st["v"][0], st["a"][0]
        d = add(st["a"][1], cross(w, st["v"][1]))
        forces = []                                       # (moment, force) of each parameter
        forces.append(([ZERO] * 3, d))
        for k in range(3):
            forces.append((cross(EYE[k], d), add(cross(al, EYE[k]), cross(w, cross(w, EYE[k])))))
        for i1, j1 in PAIRS:
            def inert(u):
                r = [ZERO] * 3
                r[i1] += u[j1]
                if i1 != j1:
                    r[j1] += u[i1]
                return r
            forces.append((add(inert(al), cross(w, inert(w))), [ZERO] * 3))
        if p.one:
            forces = forces[9:]
        base = p.column
        at = i
        while True:
            pp = pieces[at]
            s = state[at]["s"]
            for k, (n, f) in enumerate(forces):
                key = ("q", pp.coordinate)
                out.setdefault(key, {})
                out[key][base + k] = out[key].get(base + k, ZERO) + dot(s[0], n) + dot(s[1], f)
            R, t = state[at]["R"], state[at]["t"]
            moved = []
            for n, f in forces:
                f2 = times(R, f)
                moved.append((add(times(R, n), cross(t, f2)), f2))
            forces = moved
            if pp.parent is None:
                break
            at = pp.parent
        for k, (n, f) in enumerate(forces):
            for c in range(3):
                out.setdefault(("w", c), {})[base + k] = n[c]
                out.setdefault(("w", 3 + c), {})[base + k] = f[c]
    keep = []
    for key, row in out.items():
        if key[0] == "q" and measured in ("joint-torques", "both") and (torques is None or key[1] in torques):
            keep.append(row)
        if key[0] == "w" and measured in ("base-wrench", "both"):
            keep.append(row)
    return [[r.get(c, ZERO) for c in range(width)] for r in keep]


def truth(pieces, nv, width, gravity, regime, measured, torques, rng):
    """Returns the base columns (their number is the rank) and the combinations."""
    def draw():
        return mpf(rng.randrange(-10**30, 10**30)) / 10**30 * 3
    basis, order = [], []
    idle = 0
    worst_kept, worst_dropped = mpf(10)**300, ZERO
    while idle < 2 and len(basis) < width:
        grown = False
        for row in rows(pieces, nv, width, gravity, regime, measured, torques, draw):
            size = max(abs(x) for x in row) if row else ZERO
            # Zero up to rounding error.
            if size < mpf(10) ** -60:
                continue
            row = [x / size for x in row]
            for b, p in zip(basis, order):
                f = row[p]
                if f != 0:
                    row = [x - f * y for x, y in zip(row, b)]
            p = max(range(width), key=lambda c: abs(row[c]))
            if abs(row[p]) < mpf(10) ** -60:
                worst_dropped = max(worst_dropped, abs(row[p]))
                continue
            worst_kept = min(worst_kept, abs(row[p]))
            basis.append([x / row[p] for x in row])
            order.append(p)
            grown = True
        idle = 0 if grown else idle + 1
    if worst_kept < mpf(10) ** -30:
        raise ValueError("no clear gap between zero and nonzero pivots")
    # Reduced row echelon form in the order of the columns.
    m, pivots = basis, []
    r = 0
    for c in range(width):
        if r == len(m):
            break
        best = max(range(r, len(m)), key=lambda i: abs(m[i][c]))
        if abs(m[best][c]) < mpf(10) ** -40:
            continue
        m[r], m[best] = m[best], m[r]
        f = m[r][c]
        m[r] = [x / f for x in m[r]]
        for i in range(len(m)):
            if i != r and m[i][c] != 0:
                g = m[i][c]
                m[i] = [x - g * y for x, y in zip(m[i], m[r])]
        pivots.append(c)
        r += 1
    return pivots, m


TYPES = ["revolute"] * 6 + ["prismatic"] * 3 + ["continuous", "cylindrical", "universal", "spherical", "planar", "helical"]


def special(rng, decimals=None):
    """Returns a random angle, often a multiple of 15 or 90 degrees."""
    if rng.random() < 0.75:
        return pi * rng.choice([0, 0, 0, 1, 1, -1, 2]) / 2
    if rng.random() < 0.5:
        return pi * rng.choice([-4, -3, -2, 2, 3, 4, 8]) / 12
    return mpf(rng.randrange(-157, 157)) / 100


def length(rng):
    return mpf(rng.choice([0, 0, 0, 0, 1, 2, 3, 5, -2, 6, 8])) / 20


def random_rotation(rng):
    while True:
        x, y, z, w = (mpf(rng.randrange(-10**6, 10**6)) for _ in range(4))
        n = x * x + y * y + z * z + w * w
        if n > 0:
            break
    s = 2 / n
    return [[1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y)]]


def make(rng, decimals, odd):
    """Returns a random mechanism file, options of `analyze`, and the arguments of `truth`."""
    n = rng.randrange(1, 8)
    chain = rng.random() < 0.6
    telescope = rng.random() < 0.2
    bodies, pieces, last, turn = [], [], {}, {}
    coordinate, column = 0, 0
    gravity = rng.choice([[0, 0, "-9.81"]] * 3 + [[0, "-9.81", 0], [0, 0, 0]])
    joints = {}
    for i in range(n):
        name = f"b{i + 1}"
        parent = None if i == 0 else (i - 1 if chain else rng.choice([None] + list(range(i))))
        kind = rng.choice(TYPES)
        if telescope and 0 < i < 4:
            kind = "prismatic"
        R = rpy(special(rng), special(rng), special(rng))
        t = [length(rng), length(rng), length(rng)]
        axes = rng.choice(EYE)
        second = rng.choice([e for e in EYE if e is not axes])
        # Body frame of the file, arbitrarily rotated and shifted.
        U = random_rotation(rng) if odd else EYE
        u = [mpf(rng.randrange(-300, 300)) / 1000 if odd and kind in ("prismatic", "planar") else ZERO for _ in range(3)]
        up, us = turn.get(parent, (EYE, [ZERO] * 3))
        # Joint frame in the file frame of the parent. The file frame of the body is the joint frame rotated by U and shifted by u.
        P = product(transposed(up), product(R, U))
        x = times(transposed(up), add(add(t, times(R, u)), us, -1))
        turn[i] = (U, u)
        own = times(transposed(U), axes)
        own2 = times(transposed(U), second)
        joint = {"name": f"j{i + 1}", "type": kind}
        pitch = ZERO
        if kind == "universal":
            joint["axes"] = [own, own2]
        elif kind != "spherical":
            joint["axis"] = own
        if kind == "helical":
            pitch = mpf(rng.choice([1, 2])) / 100
            joint["pitch"] = pitch
        joint["origin"] = {"xyz": x, "rpy": to_rpy(P)}
        mimic = None
        candidates = [k for k in joints if joints[k][0] == "revolute"]
        if kind == "revolute" and candidates and rng.random() < 0.12:
            k = rng.choice(candidates)
            mimic = (k, rng.choice([1, -1, mpf(1) / 2, 2, mpf(3) / 4]), rng.choice([0, mpf(3) / 10]))
            joint["mimic"] = {"joint": f"j{k + 1}", "ratio": mimic[1], "offset": mimic[2]}
        steps = {"revolute": [("hinge", own)], "continuous": [("hinge", own)], "prismatic": [("slider", own)],
                 "helical": [("hinge", own)], "cylindrical": [("hinge", own), ("slider", own)], "universal": [("hinge", own), ("hinge", own2)],
                 "spherical": [("hinge", EYE[2]), ("hinge", EYE[1]), ("hinge", EYE[0])],
                 "planar": None}[kind]
        if steps is None:
            w = own
            e1 = cross(w, [mpf(3) / 10, mpf(5) / 10, mpf(7) / 10])
            size = sqrt(dot(e1, e1))
            e1 = [c / size for c in e1]
            steps = [("slider", e1), ("slider", cross(w, e1)), ("hinge", w)]
        at = last.get(parent)
        for k, (step, axis) in enumerate(steps):
            first, final = k == 0, k == len(steps) - 1
            which = coordinate
            ratio, offset = 1, 0
            if mimic:
                which, ratio, offset = joints[mimic[0]][1], mimic[1], mimic[2]
            else:
                coordinate += 1
            pieces.append(Piece(at, P if first else EYE, x if first else [ZERO] * 3, step, axis, which, ratio, offset,
                                pitch, column if final else None))
            at = len(pieces) - 1
        joints[i] = (kind if not mimic else "follower", pieces[-1].coordinate)
        last[i] = at
        column += 10
        bodies.append({"name": name, "parent": "ground" if parent is None else f"b{parent + 1}", "joint": joint})
    regime = rng.choice(["any"] * 5 + ["static", "kinetic"])
    measured = rng.choice(["joint-torques"] * 4 + ["base-wrench", "both"])
    options = [] if regime == "any" else [f"--{regime}"]
    if measured != "joint-torques":
        options += ["--measured", measured]
    def number(x):
        x = mpf(x)
        return round(float(x), decimals) if decimals else float(x)
    def plain(v):
        if isinstance(v, dict):
            return {k: plain(x) for k, x in v.items()}
        if isinstance(v, list):
            return [plain(x) for x in v]
        return v if isinstance(v, str) else number(v)
    file = {"schema": "inertial/mechanism/1", "name": "random", "gravity": [float(g) for g in gravity], "bodies": plain(bodies)}
    g = [mpf(x) for x in gravity]
    return file, options, (pieces, coordinate, column, g, regime, measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--decimals", type=int, default=0, help="number of decimals of the file (only ranks are compared)")
    parser.add_argument("--odd", action="store_true", help="rotate link frames arbitrarily")
    parser.add_argument("--keep", help="folder for the mechanisms that fail")
    args = parser.parse_args()
    wrong = uncertain = 0
    path = os.path.join(tempfile.mkdtemp(), "mechanism.json")
    for k in range(args.count):
        rng = random.Random(args.seed * 100003 + k)
        file, options, subject = make(rng, args.decimals, args.odd)
        try:
            pivots, reduced = truth(*subject[:4], subject[4], subject[5], None, rng)
        except ValueError as e:
            print(k, e)
            continue
        json.dump(file, open(path, "w"))
        run = subprocess.run([args.program, "analyze", path, "--json", *options], capture_output=True, text=True, timeout=120)
        message = None
        if run.returncode:
            message = run.stderr.strip()[-200:]
        else:
            r = json.loads(run.stdout)
            names = [f"{b['name']}.{p}" for b in file["bodies"] for p in NAMES]
            exact = r["certificate"]["exact"]
            uncertain += not exact
            got = {b["name"]: b["combination"] for b in r["base_parameters"]}
            if r["rank"] != len(pivots):
                message = f"rank {r['rank']}, expected {len(pivots)}"
            elif not args.decimals and list(got) != [names[c] for c in pivots]:
                message = f"base parameters {sorted(set(got) ^ {names[c] for c in pivots})[:6]}"
            elif not args.decimals:
                for c, row in zip(pivots, reduced):
                    size = max(abs(x) for x in row)
                    for name, x in zip(names, row):
                        y = got[names[c]].get(name, 0.0)
                        if abs(y - x) > mpf(10) ** -9 * max(size, abs(x)):
                            message = f"{names[c]}: coefficient of {name} is {y}, expected {float(x)}"
            if message:
                message = ("certified and " if exact else "") + "wrong: " + message + f" {r['warnings'][:2]}"
            elif not exact:
                print(k, "not exact", r["warnings"][:2])
        if message:
            wrong += 1
            print(k, options, message, flush=True)
            if args.keep:
                json.dump(dict(file=file, options=options), open(f"{args.keep}/{args.seed}_{k}.json", "w"))
    print(f"{args.count} mechanisms, {wrong} wrong, {uncertain} not exact")


if __name__ == "__main__":
    main()
