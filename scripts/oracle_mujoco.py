"""Computes the dynamics of MJCF models with MuJoCo, in the conventions of `inertial`.

    oracle_mujoco.py MODEL.xml…     these models
    oracle_mujoco.py --shipped      the models that ship with gymnasium and dm_control
    oracle_mujoco.py --loops MODEL.xml…     random states in which the equality constraints hold

Prints one JSON object per model and line. Velocities of free joints are converted to body velocities (linear part first), quaternions
to x y z w. Joints that an equality constraint couples or locks are eliminated. Springs, dampers, fluids, contacts and limits are
disabled. With --loops (models of hinges, slides and balls), each state includes the constraint Jacobian and the torques of the mechanism
with open loops. Exits with status 77 if MuJoCo is not installed.
"""

import glob
import json
import os
import sys
import tempfile

try:
    import mujoco
    import numpy as np
except ImportError as error:
    print(f"{error.name} is not installed", file=sys.stderr)
    sys.exit(77)

SAMPLES = 3
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
JOINTS, TENDONS = int(mujoco.mjtEq.mjEQ_JOINT), int(mujoco.mjtEq.mjEQ_TENDON)


def shipped():
    """Returns the paths of models in installed packages."""
    found = []
    for package, pattern in [("gymnasium", "envs/mujoco/assets/*.xml"), ("dm_control", "**/*.xml")]:
        try:
            root = os.path.dirname(__import__(package).__file__)
        except ImportError:
            continue
        found += sorted(glob.glob(os.path.join(root, pattern), recursive=True))
    return found


def equations(model):
    """Yields active couplings of joints and fixed tendons: rows over velocity coordinates, constants (displacements), preferred pivots."""
    def tendon(t):
        row = np.zeros(model.nv)
        for w in range(model.tendon_adr[t], model.tendon_adr[t] + model.tendon_num[t]):
            row[model.jnt_dofadr[model.wrap_objid[w]]] += model.wrap_prm[w]
        return row

    def joint(j):
        return np.eye(model.nv)[model.jnt_dofadr[j]]

    for e in range(model.neq):
        of = {JOINTS: joint, TENDONS: tendon}.get(int(model.eq_type[e]))
        if of is None or not model.eq_active0[e]:
            continue
        first, second = model.eq_obj1id[e], model.eq_obj2id[e]
        constant, slope = model.eq_data[e][:2]
        row, other = of(first), of(second) if second >= 0 else np.zeros(model.nv)
        preferred = row if of is joint else row + other
        yield row - slope * other, constant, np.flatnonzero(preferred)[::-1]


def followers(model):
    """Solves the couplings: returns coefficients of the other coordinates and a constant for each dependent coordinate."""
    solved = {}
    for row, constant, preferred in equations(model):
        for at, (other, c) in solved.items():
            row, constant = row - row[at] * other, constant - row[at] * c
        left = [i for i in preferred if abs(row[i]) > 1e-12] or list(np.flatnonzero(abs(row) > 1e-12)[::-1])
        if not left:
            continue
        row, constant, at = row / row[left[0]], constant / row[left[0]], left[0]
        for i, (other, c) in solved.items():
            solved[i] = (other - other[at] * row, c - other[at] * constant)
        solved[at] = (row, constant)
    return {at: (np.eye(model.nv)[at] - row, constant) for at, (row, constant) in solved.items()}


def complete(model, leader, qpos):
    """Sets the dependent coordinates."""
    address = {model.jnt_dofadr[j]: model.jnt_qposadr[j] for j in range(model.njnt)}
    for at, (row, constant) in leader.items():
        moved = sum(row[i] * (qpos[address[i]] - model.qpos0[address[i]]) for i in np.flatnonzero(row))
        qpos[address[at]] = model.qpos0[address[at]] + constant + moved


def jacobian(model, leader):
    """Returns G in qvel = G v of the coupled model; columns of dependent coordinates are dropped."""
    g = np.eye(model.nv)
    for at, (row, _) in leader.items():
        g[at] = row
    keep = np.ones(model.nv, bool)
    keep[list(leader)] = False
    return g[:, keep]


def gaps(model, qpos):
    """Returns the largest residual of the couplings according to MuJoCo."""
    flags = model.opt.disableflags
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    equality = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    rows = [i for i in range(data.nefc) if data.efc_type[i] == equality]
    rows = [i for i in rows if model.eq_type[data.efc_id[i]] in (JOINTS, TENDONS)]
    model.opt.disableflags = flags
    return abs(data.efc_pos[rows]).max(initial=0)


def sample(model, leader, g, rng):
    """Returns a random state and the quantities that MuJoCo computes for it."""
    data = mujoco.MjData(model)
    qpos = model.qpos0 + rng.uniform(-1, 1, model.nq)
    q = []
    body = np.eye(model.nv)  # qvel = body · (velocities in the body's frame)
    extra = np.zeros(model.nv)
    v = g @ rng.uniform(-1, 1, g.shape[1])
    a = g @ rng.uniform(-1, 1, g.shape[1])
    for joint in range(model.njnt):
        kind, at, dof = model.jnt_type[joint], model.jnt_qposadr[joint], model.jnt_dofadr[joint]
        if kind in (FREE, BALL):
            at += 3 if kind == FREE else 0
            qpos[at : at + 4] = rng.normal(size=4)
            qpos[at : at + 4] /= np.linalg.norm(qpos[at : at + 4])
        if kind == FREE:
            rotation = np.zeros(9)
            mujoco.mju_quat2Mat(rotation, qpos[at : at + 4])
            rotation = rotation.reshape(3, 3)
            body[dof : dof + 3, dof : dof + 3] = rotation
            # d/dt (R v) = R (dv/dt + w × v)
            extra[dof : dof + 3] = rotation @ np.cross(v[dof + 3 : dof + 6], v[dof : dof + 3])
    complete(model, leader, qpos)
    assert gaps(model, qpos) < 1e-12, "the couplings do not hold"
    for joint in range(model.njnt):
        if model.jnt_dofadr[joint] in leader:
            continue
        kind, at = model.jnt_type[joint], model.jnt_qposadr[joint]
        if kind == FREE:
            q += list(qpos[at : at + 3])
            at += 3
        if kind in (FREE, BALL):
            q += [*qpos[at + 1 : at + 4], qpos[at]]
        else:
            q.append(qpos[at])
    data.qpos[:] = qpos
    data.qvel[:] = body @ v
    data.qacc[:] = body @ a + extra
    mujoco.mj_inverse(model, data)
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    balance = mass @ data.qacc + data.qfrc_bias
    assert np.allclose(balance, data.qfrc_inverse, rtol=1e-9, atol=1e-9 * (1 + abs(balance).max()))
    keep = [i for i in range(model.nv) if i not in leader]
    turn = body @ g
    return {
        "q": q,
        "v": list(v[keep]),
        "a": list(a[keep]),
        "mass_matrix": (turn.T @ mass @ turn).flatten().tolist(),
        "torques": (turn.T @ data.qfrc_inverse).tolist(),
        "positions": data.xpos.tolist(),
        "rotations": data.xmat.tolist(),
    }


def describe(path):
    try:
        model = mujoco.MjModel.from_xml_path(path)
    except ValueError as error:
        return {"path": path, "refused": str(error).splitlines()[0]}
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_SPRING | off.mjDSBL_DAMPER
    model.opt.density = model.opt.viscosity = 0
    model.body_gravcomp[:] = 0
    leader = followers(model)
    g = jacobian(model, leader)
    rng = np.random.default_rng(1)
    free = [j for j in range(model.njnt) if model.jnt_dofadr[j] not in leader]
    # MuJoCo stores the damping that actuators add to joints with the actuators.
    damping = model.dof_damping.copy()
    for actuator in range(model.nu):
        if model.actuator_trntype[actuator] == mujoco.mjtTrn.mjTRN_JOINT:
            joint = model.actuator_trnid[actuator, 0]
            gear = model.actuator_gear[actuator, 0]
            damping[model.jnt_dofadr[joint]] += gear**2 * model.actuator_damping[actuator]
    first = lambda values: [float(values[model.jnt_dofadr[j]]) for j in free]
    return {
        "path": path,
        "bodies": [model.body(i).name for i in range(model.nbody)],
        "masses": model.body_mass.tolist(),
        "joints": [model.joint(j).name for j in free],
        "gravity": [0, 0, 0] if model.opt.disableflags & off.mjDSBL_GRAVITY else model.opt.gravity.tolist(),
        "damping": first(damping),
        "friction": first(model.dof_frictionloss),
        "stiffness": [float(model.jnt_stiffness[j]) for j in free],
        "rest": [float(model.qpos_spring[model.jnt_qposadr[j]]) for j in free],
        "limits": [model.jnt_range[j].tolist() if model.jnt_limited[j] else None for j in free],
        "samples": [sample(model, leader, g, rng) for _ in range(SAMPLES)] if g.shape[1] else [],
    }


def constraint(model, data):
    """Returns residual and Jacobian of the equality constraints at the state in `data`."""
    mujoco.mj_forward(model, data)
    return data.efc_pos.copy(), data.efc_J.reshape(data.nefc, model.nv).copy()


def closed_sample(model, rng):
    """Returns a random state with closed loops, found by Newton's method."""
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.uniform(-0.2, 0.2, model.nv), 1)
    for _ in range(30):
        residual, jacobian = constraint(model, data)
        step = np.linalg.lstsq(jacobian, -residual, rcond=1e-10)[0]
        mujoco.mj_integratePos(model, data.qpos, step, 1)
    residual, jacobian = constraint(model, data)
    assert abs(residual).max() < 1e-12, "the loops do not close"
    right = np.linalg.svd(jacobian)[2]
    free = right[np.linalg.matrix_rank(jacobian, 1e-9) :]
    v = free.T @ rng.uniform(-1, 1, len(free))
    # Rate of change of the Jacobian by fourth-order central differences.
    at, h, weights = data.qpos.copy(), 1e-3, {-2: 1, -1: -8, 1: 8, 2: -1}
    rate = np.zeros_like(jacobian)
    for step, weight in weights.items():
        data.qpos[:] = at
        mujoco.mj_integratePos(model, data.qpos, v, step * h)
        rate += weight / (12 * h) * constraint(model, data)[1]
    data.qpos[:] = at
    a = np.linalg.lstsq(jacobian, -rate @ v, rcond=1e-10)[0] + free.T @ rng.uniform(-1, 1, len(free))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data.qvel[:], data.qacc[:] = v, a
    mujoco.mj_inverse(model, data)
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    q = []
    for joint in range(model.njnt):
        i = model.jnt_qposadr[joint]
        q += [*at[i + 1 : i + 4], at[i]] if model.jnt_type[joint] == BALL else [at[i]]
    return {
        "q": q,
        "v": v.tolist(),
        "a": a.tolist(),
        "torques": data.qfrc_inverse.tolist(),
        "jacobian": jacobian.tolist(),
    }


def describe_closed(path):
    model = mujoco.MjModel.from_xml_path(path)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    off = mujoco.mjtDisableBit
    for switch in (off.mjDSBL_CONTACT, off.mjDSBL_LIMIT, off.mjDSBL_FRICTIONLOSS, off.mjDSBL_SPRING, off.mjDSBL_DAMPER):
        model.opt.disableflags |= switch
    rng = np.random.default_rng(2)
    return {"path": path, "samples": [closed_sample(model, rng) for _ in range(SAMPLES)]}


def main(arguments):
    loops = arguments[:1] == ["--loops"]
    arguments = arguments[loops:]
    paths = shipped() if arguments == ["--shipped"] else [os.path.abspath(path) for path in arguments]
    # MuJoCo writes its log file into the current folder.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path in paths:
            print(json.dumps(describe_closed(path) if loops else describe(path)))
        os.chdir("/")


main(sys.argv[1:])
