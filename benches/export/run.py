#!/usr/bin/env python3
"""Compares our generated C code with CasADi's in alternating runs: inverse dynamics and regressor of UR5 and Panda.

usage: benches/export/run.py [--calls N] [--rounds N]

`inertial export --to c` generates our code. CasADi generates the other from a recursive Newton-Euler algorithm in SX symbols with the
constants of Pinocchio's model (the wheels of Pinocchio include neither `pinocchio.casadi` nor code generation). CasADi's regressor is the
derivative of the torques with respect to all parameters; ours has only the columns of the base parameters. Both are compiled with
`gcc -O3`, called at the same states, and their torques must agree to 1e-10. `benches/pinocchio` measures Pinocchio's `rnea` in C++.
Needs casadi and pin.
"""

import argparse
import pathlib
import subprocess
import tempfile

import casadi as ca
import numpy as np
import pinocchio as pin

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "inertial"
ROBOTS = [
    ("ur5", "ur_description/urdf/ur5_robot.urdf", []),
    ("panda", "panda_description/urdf/panda.urdf", ["panda_finger_joint1", "panda_finger_joint2"]),
]


def skew(v):
    return ca.vertcat(ca.horzcat(0, -v[2], v[1]), ca.horzcat(v[2], 0, -v[0]), ca.horzcat(-v[1], v[0], 0))


def cross(a, b):
    return skew(a) @ b


def rotation(axis, angle):
    """Rodrigues' formula for a constant axis."""
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + ca.sin(angle) * k + (1 - ca.cos(angle)) * (k @ k)


def rnea(model, q, v, a, parameters):
    """Returns the torques of a chain of hinges, computed in body frames. Parameters are m, h, and I about the frame origin."""
    omega, alpha, linear = [ca.SX.zeros(3)], [ca.SX.zeros(3)], [ca.SX([0, 0, 9.81])]
    force, moment, turns = [None], [None], [None]
    for i in range(1, model.njoints):
        axis = np.zeros(3)
        axis["XYZ".index(model.joints[i].shortname()[-1])] = 1
        place = model.jointPlacements[i]
        r = place.rotation @ rotation(axis, q[i - 1])
        turns.append((r, place.translation, axis))
        w = r.T @ omega[i - 1] + axis * v[i - 1]
        dw = r.T @ alpha[i - 1] + axis * a[i - 1] + cross(r.T @ omega[i - 1], axis * v[i - 1])
        p = place.translation
        acc = r.T @ (linear[i - 1] + cross(alpha[i - 1], p) + cross(omega[i - 1], cross(omega[i - 1], p)))
        omega.append(w), alpha.append(dw), linear.append(acc)
        m, h = parameters[10 * i - 10], parameters[10 * i - 9 : 10 * i - 6]
        xx, xy, yy, xz, yz, zz = (parameters[10 * i - 6 + k] for k in range(6))
        inertia = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
        force.append(m * acc + cross(dw, h) + cross(w, cross(w, h)))
        moment.append(inertia @ dw + cross(w, inertia @ w) + cross(h, acc))
    tau = [None] * (model.njoints - 1)
    for i in range(model.njoints - 1, 0, -1):
        r, p, axis = turns[i]
        tau[i - 1] = ca.dot(axis, moment[i])
        if i > 1:
            f = r @ force[i]
            force[i - 1] += f
            moment[i - 1] += r @ moment[i] + cross(p, f)
    return ca.vertcat(*tau)


def casadi_code(model, folder):
    n = model.nv
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    # Pinocchio's order: m, h, xx, xy, yy, xz, yz, zz.
    values = np.concatenate([model.inertias[i].toDynamicParameters() for i in range(1, model.njoints)])
    symbols = ca.SX.sym("p", len(values))
    full = rnea(model, q, v, a, symbols)
    # Row-major, like our code.
    regressor = ca.Function("peer_regressor", [q, v, a], [ca.densify(ca.jacobian(full, symbols)).T])
    torques = ca.Function("peer_rnea", [q, v, a], [ca.densify(rnea(model, q, v, a, ca.SX(values)))])
    generator = ca.CodeGenerator("peer.c", {"with_header": False})
    generator.add(torques)
    generator.add(regressor)
    generator.generate(str(folder) + "/")
    return max(torques.sz_w(), regressor.sz_w(), 1), len(values)


HARNESS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <math.h>
#include "arm.h"
int peer_rnea(const double **, double **, long long *, double *, int);
int peer_regressor(const double **, double **, long long *, double *, int);
static double w[SIZE], q[64][ARM_NQ], v[64][ARM_NV], a[64][ARM_NV], t1[ARM_NV], t2[ARM_NV];
static double own_y[ARM_NV * ARM_BASE_PARAMETERS], peer_y[ARM_NV * PARAMETERS];
static double seconds(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static double value(void) { return 2.0 * rand() / RAND_MAX - 1; }
int main(int argc, char **argv) {
  int calls = atoi(argv[1]), rounds = atoi(argv[2]);
  double sum = 0, gap = 0, size = 0;
  (void)argc;
  for (int k = 0; k < 64; k++)
    for (int i = 0; i < ARM_NV; i++) { q[k][i] = value(); v[k][i] = value(); a[k][i] = value(); }
  for (int k = 0; k < 64; k++) {
    const double *in[3] = {q[k], v[k], a[k]};
    double *out[1] = {t2};
    arm_inverse_dynamics(q[k], v[k], a[k], t1);
    peer_rnea(in, out, 0, w, 0);
    for (int i = 0; i < ARM_NV; i++) { gap = fmax(gap, fabs(t1[i] - t2[i])); size = fmax(size, fabs(t1[i])); }
    /* The columns of the regressors differ, so they are not compared; the generated code tests its regressor itself. */
  }
  if (!(gap <= 1e-10 * size)) { fprintf(stderr, "results differ by %g of %g\n", gap, size); return 1; }
  for (int r = 0; r < rounds; r++) {
    double t[5];
    t[0] = seconds();
    for (int k = 0; k < calls; k++) { arm_inverse_dynamics(q[k & 63], v[k & 63], a[k & 63], t1); sum += t1[0]; }
    t[1] = seconds();
    for (int k = 0; k < calls; k++) { const double *in[3] = {q[k & 63], v[k & 63], a[k & 63]}; double *out[1] = {t2}; peer_rnea(in, out, 0, w, 0); sum += t2[0]; }
    t[2] = seconds();
    for (int k = 0; k < calls; k++) { arm_regressor(q[k & 63], v[k & 63], a[k & 63], own_y); sum += own_y[0]; }
    t[3] = seconds();
    for (int k = 0; k < calls; k++) { const double *in[3] = {q[k & 63], v[k & 63], a[k & 63]}; double *out[1] = {peer_y}; peer_regressor(in, out, 0, w, 0); sum += peer_y[0]; }
    t[4] = seconds();
    for (int i = 0; i < 4; i++) printf("%g ", (t[i + 1] - t[i]) / calls * 1e9);
    printf("\n");
  }
  return sum == 0.5;
}
"""


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calls", type=int, default=200_000)
    options.add_argument("--rounds", type=int, default=9)
    options = options.parse_args()
    robots = next(
        p for prefix in pathlib.Path(pin.__file__).resolve().parents if (p := prefix / "share/example-robot-data/robots").is_dir()
    )
    print(f"{'robot':8} {'function':18} {'inertial':>10} {'CasADi':>10} {'ratio':>7}   (ns, shortest processor time of {options.rounds} alternating runs; ratio above 1: inertial is faster)")
    for name, urdf, locked in ROBOTS:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            model = pin.buildModelFromUrdf(str(robots / urdf))
            model = pin.buildReducedModel(model, [model.getJointId(j) for j in locked], pin.neutral(model))
            # Locking the first finger also locks the one that mimics it.
            locks = [x for j in locked[:1] for x in ("--lock", f"{j}=0")]
            export = [PROGRAM, "export", robots / urdf, "--to", "c", "--out", folder / "arm.c", *locks]
            subprocess.run(export, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            size, parameters = casadi_code(model, folder)
            (folder / "main.c").write_text(f"#define SIZE {size}\n#define PARAMETERS {parameters}\n" + HARNESS)
            build = ["gcc", "-O3", "-std=gnu11", "-w", "main.c", "arm.c", "peer.c", "-lm", "-o", "bench"]
            subprocess.run(build, cwd=folder, check=True)
            run = [folder / "bench", str(options.calls), str(options.rounds)]
            out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
            rows = np.array([[float(x) for x in line.split()] for line in out.splitlines()])
            best = [min(column) for column in rows.T]
            for function, k in [("inverse dynamics", 0), ("regressor", 2)]:
                mine, peer = best[k], best[k + 1]
                print(f"{name:8} {function:18} {mine:10.0f} {peer:10.0f} {peer / mine:7.2f}")


main()
