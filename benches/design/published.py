"""Reproduces section VI of Naveen, Shah and Misra with numpy and scipy, independently of the results in docs/momentum.md.

Runs steps 1 to 3 of the published design (eq. 32 by SLSQP on the offset model, algorithm 1 as described in the text of the paper) from
random starts, and evaluates the seeds of table 3. Each motion is simulated with the true robot, measured at 10 Hz with the published noise,
and estimated by least squares.

    python benches/design/published.py [number of starts]
"""

import sys
import tomllib
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

MODELS = Path(__file__).resolve().parents[2] / "crates/inertial/src/mechanism/builtin"
PARENTS = [None, 0, 1, 2, 0, 4, 5]
SIGMA = np.array([8e-5] * 3 + [5e-5] * 9)  # angular and linear velocity of the base, joints
LARGEST = np.radians(2.513)  # largest step of a joint in an interval
WHEEL = 3 * np.pi  # step of a wheel of 1 kg m²
KEPT = [0, 2, 3, 4, 5, 7, 8]  # indices into Ixx Iyy Izz Ixy Iyz Izx m mx my mz of an arm link
COLUMNS = list(range(10)) + [10 * i + k for i in range(1, 7) for k in KEPT]
TABLE3 = np.radians([40.661, -109.403, -78.782, 125.089, -110, 51.228, 0.524, 2.51, 2.51, 2.513, 2.036, 2.5])


def load(name):
    """Returns offsets and twists of the joints, and the ten parameters of each link in its frame."""
    bodies = tomllib.loads((MODELS / f"{name}.toml").read_text())["bodies"]
    origins = [b["joint"].get("origin", {}) for b in bodies]
    parameters = []
    for body in bodies:
        own = body["inertial"]
        m, c, i = own["mass"], np.array(own["com"], float), own["inertia"]
        tensor = np.array(
            [[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]], [i["ixz"], i["iyz"], i["izz"]]]
        )
        tensor = tensor + m * (c @ c * np.eye(3) - np.outer(c, c))
        products = [tensor[0, 1], tensor[1, 2], tensor[0, 2]]
        parameters += [*np.diag(tensor), *products, m, *(m * c)]
    offsets = [np.array(o.get("xyz", [0, 0, 0]), float) for o in origins]
    return offsets, [o.get("rpy", [0, 0, 0])[0] for o in origins], np.array(parameters)


OFFSETS, TWISTS, TRUE = load("space-dual-arm")
BELIEVED = load("space-dual-arm-offset")[2]


def skew(v):
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    return out - np.swapaxes(out, -1, -2)


def regressor(q, base, rates):
    """Returns the momentum (angular, linear) about the base origin in base axes per parameter of all links; `q` has one row per sample."""
    n = len(q)
    rotation, position = [np.broadcast_to(np.eye(3), (n, 3, 3))], [np.zeros((n, 3))]
    angular, linear = [base[:, :3]], [base[:, 3:]]
    for i in range(1, 7):
        p, c, s = PARENTS[i], np.cos(q[:, i - 1]), np.sin(q[:, i - 1])
        ca, sa = np.cos(TWISTS[i]), np.sin(TWISTS[i])
        turn = np.zeros((n, 3, 3))
        turn[:, 0, 0], turn[:, 0, 1] = c, -s
        turn[:, 1, 0], turn[:, 1, 1], turn[:, 1, 2] = s * ca, c * ca, -sa
        turn[:, 2, 0], turn[:, 2, 1], turn[:, 2, 2] = s * sa, c * sa, ca
        arm = rotation[p] @ OFFSETS[i]
        rotation.append(rotation[p] @ turn)
        position.append(position[p] + arm)
        linear.append(linear[p] + np.cross(angular[p], arm))
        angular.append(angular[p] + rotation[i][:, :, 2] * rates[:, i - 1 : i])
    out = np.zeros((n, 6, 70))
    for i in range(7):
        w = np.einsum("nji,nj->ni", rotation[i], angular[i])
        v = np.einsum("nji,nj->ni", rotation[i], linear[i])
        spin, push = np.zeros((n, 3, 10)), np.zeros((n, 3, 10))
        for k in range(3):
            spin[:, k, k] = w[:, k]
        for column, (a, b) in enumerate([(0, 1), (1, 2), (0, 2)], 3):
            spin[:, a, column], spin[:, b, column] = w[:, b], w[:, a]
        spin[:, :, 7:], push[:, :, 6], push[:, :, 7:] = -skew(v), v, skew(w)
        push = rotation[i] @ push
        out[:, 3:, 10 * i : 10 * i + 10] = push
        out[:, :3, 10 * i : 10 * i + 10] = rotation[i] @ spin + skew(position[i]) @ push
    return out


def answer(q, rates, wheels, parameters):
    """Returns the twist of the base for zero total momentum."""
    unit = lambda k: np.tile(np.eye(6)[k], (len(q), 1))
    whole = np.stack([regressor(q, unit(k), 0 * rates) @ parameters for k in range(6)], -1)
    moved = regressor(q, np.zeros((len(q), 6)), rates) @ parameters
    moved[:, :3] += wheels
    return np.linalg.solve(whole, -moved[..., None])[..., 0]


def motion(seeds, directions, rate=10):
    """Returns positions and rates of the joints and rates of the wheels (eqs 28 to 31)."""
    t = np.arange(rate) / rate
    shape, slope = t - np.sin(2 * np.pi * t) / (2 * np.pi), 1 - np.cos(2 * np.pi * t)
    steps = directions[:, :6] * seeds[6:]
    start = seeds[:6] + np.vstack([np.zeros(6), np.cumsum(steps, 0)[:-1]])
    q = start[:, None] + shape[:, None] * steps[:, None]
    rates, wheels = (slope[:, None] * s[:, None] for s in (steps, directions[:, 6:] * WHEEL))
    return q.reshape(-1, 6), rates.reshape(-1, 6), wheels.reshape(-1, 3)


def flown(seeds, directions, parameters):
    q, rates, wheels = motion(seeds, directions)
    base = answer(q, rates, wheels, parameters)
    return regressor(q, base, rates)[:, :, COLUMNS], base


def judged(k):
    values = np.linalg.svd(k.reshape(-1, 52), compute_uv=False)
    return int((values > values[0] / 300).sum()), values[0] / values[-1]


def counted(k, most=5):
    """Selects intervals by algorithm 1 as described in the text: the number of significant singular values may stay equal for a limited
    number (`most`) of consecutive intervals."""
    kept, factor, run = [0], k[0], 0
    before = judged(factor)[0]
    for i in range(1, len(k)):
        trial = np.linalg.qr(np.vstack([factor, k[i]]), mode="r")
        now = judged(trial)[0]
        if now > before or (now == before and run <= most):
            run = 0 if now > before else run + 1
            kept, factor, before = [*kept, i], trial, now
    return kept


def optimized(seeds, directions, steps, weight=0.01):
    """Minimizes the logarithm of eq. 32 on the nominal model subject to eqs 33 and 37."""
    gone = np.vstack([np.zeros(6), np.cumsum(directions[:, :6], 0)])
    high, low = gone.max(0), gone.min(0)

    def cost(x):
        k, base = flown(x, directions, BELIEVED)
        speeds = np.hstack([base, motion(x, directions)[1]])
        return np.log(judged(k)[1] + weight * speeds.size / (speeds**2).sum())

    inside = lambda x: np.concatenate([np.pi - x[:6] - high * x[6:], np.pi + x[:6] + low * x[6:]])
    bounds = [(-np.pi, np.pi)] * 6 + [(0.02 * LARGEST, LARGEST)] * 6
    return minimize(
        cost, seeds, method="SLSQP", bounds=bounds, constraints=[{"type": "ineq", "fun": inside}],
        options={"maxiter": steps, "ftol": 1e-4},
    ).x


def errors(seeds, directions, draws=20):
    """Returns medians over noise draws of the median and largest relative error of least squares; positions are integrated by Euler's method."""
    q, rates, wheels = motion(seeds, directions)
    k, base = flown(seeds, directions, TRUE)
    momentum = np.zeros((len(q), 6))
    momentum[:, :3] = -wheels
    truth = np.linalg.lstsq(k.reshape(-1, 52), momentum.ravel(), rcond=None)[0]
    found = []
    for draw in range(draws):
        noise = np.random.default_rng(draw).standard_normal((len(q), 12)) * SIGMA
        measured = rates + noise[:, 6:]
        late = q[0] + np.vstack([np.zeros(6), np.cumsum(measured / 10, 0)[:-1]])
        k = regressor(late, base + noise[:, :6], measured)[:, :, COLUMNS]
        x = np.linalg.lstsq(k.reshape(-1, 52), momentum.ravel(), rcond=None)[0]
        found.append(np.abs(x / truth - 1))
    return 100 * np.median(np.median(found, 1)), 100 * np.median(np.max(found, 1))


def told(name, seeds, directions):
    k, _ = flown(seeds, directions, TRUE)
    k = k.reshape(len(directions), -1, 52)
    counts = [judged(k[:n])[0] for n in (1, 3, 20, 40, len(directions))]
    believed = judged(flown(seeds, directions, BELIEVED)[0])[1]
    median, largest = errors(seeds, directions)
    print(f"{name}: {len(directions)} intervals, condition number {believed:.0f} nominal, {judged(k)[1]:.0f} true; significant values "
          f"{counts}; least squares {median:.2f} %, {largest:.0f} %", flush=True)


def main():
    numbers = np.arange(256)[:, None] >> np.arange(7, -1, -1)
    directions = np.hstack([np.ones((256, 1)), 1.0 - 2 * (numbers & 1)])
    told("table 3, first 67", TABLE3, directions[:67])
    random = np.random.default_rng(1)
    for start in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
        seeds = np.concatenate([random.uniform(-2, 2, 6), np.radians([0.4, 1, 1, 2, 2, 2.4])])
        seeds = optimized(seeds, directions, 15)
        kept = directions[counted(flown(seeds, directions, BELIEVED)[0].reshape(256, -1, 52))]
        told(f"optimized seeds {start}", optimized(seeds, kept, 40), kept)


if __name__ == "__main__":
    main()
