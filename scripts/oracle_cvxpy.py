"""Solves least squares over physically consistent bodies with CVXPY and Clarabel, for tests/all/consistent.rs.

usage: oracle_cvxpy.py FILE   reads a JSON list of problems, prints the JSON list of their optimal costs
Exits with status 77 if CVXPY or Clarabel is not installed.

A problem minimizes x'Gx/2 - r'x + constant + sum_k w_k (tr(C_k P_k) - log det P_k) subject to P_k >= 0 and x_j >= 0, where P_k
is the pseudo-inertia of the ten variables (m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz) at an offset. The formulation is independent of the
library and shares only the data: each body is a matrix variable, scaled by the body of the starting point.
"""

import json
import sys

try:
    import cvxpy as cp
    import numpy as np

    assert "CLARABEL" in cp.installed_solvers(), "Clarabel is not installed"
except (ImportError, AssertionError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)


def parameters(p):
    """Returns the ten parameters of a pseudo-inertia: I = tr(S) 1 - S."""
    inertia = np.trace(p[:3, :3]) * np.eye(3) - p[:3, :3]
    return np.array([p[3, 3], *p[:3, 3], *inertia[0], *inertia[1, 1:], inertia[2, 2]])


def pseudo_inertia(x):
    inertia = np.array([[x[4], x[5], x[6]], [x[5], x[7], x[8]], [x[6], x[8], x[9]]])
    p = np.empty((4, 4))
    p[:3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    p[:3, 3] = p[3, :3] = x[1:4]
    p[3, 3] = x[0]
    return p


def solve(problem):
    gram, rhs, start = (np.array(problem[key]) for key in ("gram", "rhs", "start"))
    n = len(rhs)
    values, vectors = np.linalg.eigh(gram)
    seen = values > 1e-14 * values[-1]
    root = np.sqrt(values[seen])[:, None] * vectors[:, seen].T
    target = (vectors[:, seen].T @ rhs) / np.sqrt(values[seen])
    # x consists of scaled free variables and of bodies in units of the starting point's bodies.
    free = sorted(set(range(n)) - {c["offset"] + i for c in problem["cones"] for i in range(10)})
    scale = 1 / np.sqrt(np.maximum(np.diag(gram)[free], 1e-12 * values[-1]))
    y = cp.Variable(len(free))
    expression = np.eye(n)[:, free] @ cp.multiply(scale, y) if free else 0
    constraints = [y[free.index(j)] >= 0 for j in problem["nonnegative"]]
    prior = 0
    for cone in problem["cones"]:
        at, weight = cone["offset"], cone["weight"]
        factor = np.linalg.cholesky(pseudo_inertia(start[at:at + 10]))
        body = cp.Variable((4, 4), symmetric=True)
        units = np.eye(16).reshape(16, 4, 4)
        columns = [parameters(factor @ (u + u.T) / 2 @ factor.T) for u in units]
        place = np.zeros((n, 16))
        place[at:at + 10] = np.array(columns).T
        expression = expression + place @ cp.reshape(body, (16,), order="C")
        constraints.append(body >> 0)
        if weight > 0:
            inner = factor.T @ np.array(cone["prior"]) @ factor
            shift = 2 * np.log(np.diag(factor)).sum()
            prior = prior + weight * (cp.trace(inner @ body) - cp.log_det(body) - shift)
    cost = 0.5 * cp.sum_squares(root @ expression - target) + prior
    goal = cp.Problem(cp.Minimize(cost), constraints)
    tight = {key: 1e-11 for key in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}
    goal.solve(solver=cp.CLARABEL, **tight)
    assert goal.status in ("optimal", "optimal_inaccurate"), goal.status
    return goal.value + problem["constant"] - 0.5 * float(target @ target)


def main(path):
    with open(path) as file:
        print(json.dumps([solve(problem) for problem in json.load(file)]))


main(sys.argv[1])
