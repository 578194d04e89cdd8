"""Asks MuJoCo for the dynamics of MJCF models, in the conventions of `inertial`.

    oracle_mujoco.py MODEL.xml…     these models
    oracle_mujoco.py --shipped      the models that ship with gymnasium and dm_control

Prints one JSON object per model and line. Coordinates of free joints are turned into body velocities (linear part
first), quaternions into x y z w; joints that an equality constraint couples or locks are eliminated. Springs, dampers,
fluids, contacts and limits are switched off. Exit status 77: MuJoCo is not installed.
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


def main(arguments):
    paths = shipped() if arguments == ["--shipped"] else [os.path.abspath(path) for path in arguments]
    # MuJoCo writes its log where it runs.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path in paths:
            print(json.dumps(describe(path)))
        os.chdir("/")


main(sys.argv[1:])
