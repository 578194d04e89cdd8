"""Asks MuJoCo for the dynamics of MJCF models, in the conventions of `inertial`.

    oracle_mujoco.py MODEL.xml…     these models
    oracle_mujoco.py --shipped      the models that ship with gymnasium and dm_control
    oracle_mujoco.py --loops MODEL.xml…     random states in which the equality constraints hold

Prints one JSON object per model and line. Coordinates of free joints are turned into body velocities (linear part
first), quaternions into x y z w; joints that an equality constraint couples or locks are eliminated. Springs, dampers,
fluids, contacts and limits are switched off. With --loops (models of hinges, slides and balls) each state comes with the
constraint Jacobian and with the torques that it takes if the loops are cut. Exit status 77: MuJoCo is not installed.
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


def shipped():
    """Models of installed packages."""
    found = []
    for package, pattern in [("gymnasium", "envs/mujoco/assets/*.xml"), ("dm_control", "**/*.xml")]:
        try:
            root = os.path.dirname(__import__(package).__file__)
        except ImportError:
            continue
        found += sorted(glob.glob(os.path.join(root, pattern), recursive=True))
    return found


def followers(model):
    """Joints that an equality constraint couples or locks: the joint that leads (or -1), constant and slope."""
    leader = {}
    for e in range(model.neq):
        if model.eq_type[e] != mujoco.mjtEq.mjEQ_JOINT or not model.eq_active0[e]:
            continue
        follower, other = model.eq_obj1id[e], model.eq_obj2id[e]
        constant, slope = model.eq_data[e][:2]
        leader[follower] = (other if slope != 0 else -1, constant, slope)
    return leader


def complete(model, leader, qpos):
    """Sets the coordinates that follow others, as often as chains of couplings need."""
    for _ in range(len(leader)):
        for follower, (other, constant, slope) in leader.items():
            y, y0 = model.jnt_qposadr[follower], model.qpos0[model.jnt_qposadr[follower]]
            qpos[y] = y0 + constant
            if other >= 0:
                x = model.jnt_qposadr[other]
                qpos[y] += slope * (qpos[x] - model.qpos0[x])


def jacobian(model, leader):
    """qvel = G v for the coupled model; columns of followers are dropped."""
    g = np.eye(model.nv)
    for _ in range(len(leader)):
        for follower, (other, _, slope) in leader.items():
            row = model.jnt_dofadr[follower]
            g[row] = slope * g[model.jnt_dofadr[other]] if other >= 0 else 0
    keep = np.ones(model.nv, bool)
    keep[[model.jnt_dofadr[follower] for follower in leader]] = False
    return g[:, keep]


def sample(model, leader, g, rng):
    """A random state and what MuJoCo makes of it."""
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
    for joint in range(model.njnt):
        if joint in leader:
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
    keep = [i for i in range(model.nv) if i not in [model.jnt_dofadr[f] for f in leader]]
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
    free = [j for j in range(model.njnt) if j not in leader]
    # What actuators add to joints MuJoCo keeps with the actuators.
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
    """The equality constraints' residual and Jacobian where `data` stands."""
    mujoco.mj_forward(model, data)
    return data.efc_pos.copy(), data.efc_J.reshape(data.nefc, model.nv).copy()


def closed_sample(model, rng):
    """A random state in which the loops are closed, by Newton's method."""
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
    # The Jacobian's rate of change, by central differences of the fourth order.
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
    # MuJoCo writes its log where it runs.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path in paths:
            print(json.dumps(describe_closed(path) if loops else describe(path)))
        os.chdir("/")


main(sys.argv[1:])
