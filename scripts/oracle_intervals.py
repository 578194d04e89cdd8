"""Computes intervals over all bodies consistent with a sensor log and its noise bounds with CVXPY and Clarabel, for tests/all/intervals.rs.

usage: oracle_intervals.py FILE   reads a JSON list of problems, prints the ends of the intervals of each
Exits with status 77 if CVXPY or Clarabel is not installed.

A problem has the regressor and the wrenches of all samples (six rows each: force, then moment) and a noise bound for each component. A
body with parameters x and constant offsets o of the six components is consistent with the samples if its pseudo-inertia is positive
semidefinite and, for each component, the residuals of n samples have a norm of at most bound * sqrt(n). The intervals are those of m, of
the centre of mass and of the six inertias about the origin. A problem with "bodies" is a robot: the regressor has one row for each
joint and sample and ten columns for each body, and the intervals are those of the masses and first moments of all bodies; an end that
does not exist is null. With "mass" and "radius", every body has at most this mass and lies in a ball around the origin of its frame.
The formulation shares only the samples with the library.
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

TIGHT = {key: 1e-10 for key in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}


def ten(p):
    """Returns the parameters m, h, Ixx, Ixy, Ixz, Iyy, Iyz, Izz of a pseudo-inertia: I = tr(S) 1 - S."""
    return [
        p[3, 3], p[0, 3], p[1, 3], p[2, 3], p[1, 1] + p[2, 2], -p[0, 1], -p[0, 2], p[0, 0] + p[2, 2], -p[1, 2],
        p[0, 0] + p[1, 1],
    ]


def ends(problem):
    regressor, wrench = np.array(problem["regressor"]), np.array(problem["wrench"])
    body = cp.Variable((4, 4), PSD=True)
    offset, scale = cp.Variable(6), cp.Variable()
    x = ten(body)
    parameters = cp.hstack(x)

    def explained(factor):
        """Returns the noise constraints; a variable factor gives their homogenized (conic) form."""
        out = []
        for k, bound in enumerate(problem["bounds"]):
            rows, measured = regressor[k::6], wrench[k::6]
            count = len(measured)
            residual = rows @ parameters + offset[k] * np.ones(count) - measured * factor
            out.append(cp.norm(residual) <= bound * np.sqrt(count) * factor)
        return out

    def interval(form, constraints):
        found = []
        for goal in (cp.Minimize(form), cp.Maximize(form)):
            task = cp.Problem(goal, constraints)
            task.solve(solver=cp.CLARABEL, **TIGHT)
            assert task.status in ("optimal", "optimal_inaccurate"), task.status
            found.append(float(task.value))
        return found

    plain = explained(1.0)
    # The centre of mass is h/m. After dividing all variables by m (scale = 1/m), it equals h.
    divided = [*explained(scale), x[0] == 1]
    return [
        interval(x[0], plain),
        *(interval(x[k], divided) for k in (1, 2, 3)),
        *(interval(x[k], plain) for k in range(4, 10)),
    ]


def robot_ends(problem):
    regressor, forces, bounds = (np.array(problem[key]) for key in ("regressor", "forces", "bounds"))
    bodies = [cp.Variable((4, 4), PSD=True) for _ in range(problem["bodies"])]
    x = cp.hstack([value for body in bodies for value in ten(body)])
    constraints = []
    for k, bound in enumerate(bounds):
        rows, measured = regressor[k :: len(bounds)], forces[k :: len(bounds)]
        # The triangular factor of all samples gives the same norms with fewer rows.
        factor = np.linalg.qr(np.column_stack([rows, measured]), mode="r")
        residual = factor[:, :-1] @ x - factor[:, -1]
        constraints.append(cp.norm(residual) <= bound * np.sqrt(len(measured)))

    # Clarabel needs a bounded set: the sizes of the bodies are limited. An end that moves with the limit does not exist.
    limit = cp.Parameter(pos=True)
    limits = (100, 2000)
    if "mass" in problem:
        constraints += [body[3, 3] <= problem["mass"] for body in bodies]
        constraints += [cp.trace(body[:3, :3]) <= body[3, 3] * problem["radius"] ** 2 for body in bodies]
        limits = ()
    else:
        constraints += [cp.trace(body) <= limit for body in bodies]

    def end(goal):
        task = cp.Problem(goal, constraints)

        def solved(**tolerances):
            task.solve(solver=cp.CLARABEL, **tolerances)
            return float(task.value)

        if not limits:
            return solved(**TIGHT)
        found = []
        for size in limits:
            limit.value = size
            found.append(solved(tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9))
        return found[1] if abs(found[1] - found[0]) <= 0.05 * max(1e-3, abs(found[1])) else None

    places = [10 * body + k for body in range(len(bodies)) for k in range(4)]
    return [[end(cp.Minimize(x[k])), end(cp.Maximize(x[k]))] for k in places]


def main(path):
    with open(path) as file:
        problems = json.load(file)
    print(json.dumps([robot_ends(p) if "bodies" in p else ends(p) for p in problems]))


main(sys.argv[1])
