"""Writes robots as USD scenes with usd-core and computes their dynamics with Pinocchio.

    oracle_usd.py FOLDER

Robots are URDFs of example-robot-data and random trees. Each is written in several ways: as text, crate file and package; with arbitrary
body frames, joints with either body first, different units and axes; and composed of sublayers, references, payloads, variants and
classes. Prints one JSON object per scene and line: the masses of the links and, for random states, the positions (in the conventions of
the scene), velocities, accelerations and torques by joint. The last line lists the mass properties that UsdPhysics computes from
collision shapes. Exits with status 77 if usd-core or Pinocchio is not installed.
"""

import json
import os
import pathlib
import sys

try:
    import numpy as np
    import pinocchio as pin
    from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdUtils
except ImportError as error:
    print(f"{error.name} is not installed", file=sys.stderr)
    sys.exit(77)

SAMPLES = 3
ROBOTS = [
    ("ur5", "ur_description/urdf/ur5_robot.urdf", False),
    ("panda", "panda_description/urdf/panda.urdf", False),
    ("solo12", "solo_description/robots/solo12.urdf", True),
    ("z1", "z1_description/urdf/z1.urdf", False),
]


def quaternion(rotation):
    q = pin.Quaternion(rotation)
    return Gf.Quatf(float(q.w), float(q.x), float(q.y), float(q.z))


def vector(v):
    return Gf.Vec3f(*(float(x) for x in v))


def aligned(axis):
    """Returns a rotation whose first column is the axis."""
    axis = axis / np.linalg.norm(axis)
    other = np.eye(3)[np.argmin(abs(axis))]
    y = np.cross(axis, other)
    y /= np.linalg.norm(y)
    return np.column_stack([axis, y, np.cross(axis, y)])


def motion(model, joint):
    """Returns type and axis of a Pinocchio joint."""
    data = model.createData()
    kind = model.joints[joint].shortname()
    if "FreeFlyer" in kind:
        return "free", None
    if "Spherical" in kind:
        return "spherical", None
    subspace = np.zeros((6, 1))
    v = np.zeros(model.nv)
    v[model.joints[joint].idx_v] = 1
    pin.forwardKinematics(model, data, pin.neutral(model), v)
    parent = data.v[model.parents[joint]]
    subspace = (data.v[joint] - data.liMi[joint].actInv(parent)).vector
    if np.linalg.norm(subspace[3:]) > 0.5:
        return "revolute", subspace[3:]
    return "prismatic", subspace[:3]


def random_tree(rng, count):
    """Returns a random tree of all joint types, connected to the ground by its first joint."""
    model = pin.Model()
    models = [pin.JointModelRX, pin.JointModelRY, pin.JointModelPZ, pin.JointModelPX, pin.JointModelSpherical]
    for i in range(count):
        parent = 0 if i == 0 else int(rng.integers(max(1, i - 2), i + 1))
        made = models[int(rng.integers(len(models)))]()
        if rng.uniform() < 0.3:
            axis = rng.normal(size=3)
            made = pin.JointModelRevoluteUnaligned(*(axis / np.linalg.norm(axis)))
        joint = model.addJoint(parent, made, pin.SE3.Random(), f"joint{i}")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    return model


class Writer:
    """Writes a model into a stage below a prim."""

    def __init__(self, model, rng, plain, meters=1.0, kilograms=1.0):
        self.model, self.rng = model, rng
        self.meters, self.kilograms = meters, kilograms
        self.signs = {}
        n = model.njoints
        data = model.createData()
        neutral = pin.neutral(model)
        # The poses of bodies are arbitrary; only the joint frames matter.
        start = pin.integrate(model, neutral, rng.uniform(-1, 1, model.nv))
        pin.forwardKinematics(model, data, start)
        offset = lambda i: pin.SE3.Identity() if plain or motion(model, i)[0] in ("free", "spherical") else pin.SE3.Random()
        self.offsets = [None] + [offset(i) for i in range(1, n)]
        self.poses = [pin.SE3.Identity()] + [data.oMi[i] * self.offsets[i] for i in range(1, n)]
        self.reverse = [not plain and rng.uniform() < 0.4 for _ in range(n)]

    def name(self, joint):
        return "".join(c if c.isalnum() else "_" for c in self.model.names[joint])

    def bodies(self, stage, root, mass=True):
        for i in range(1, self.model.njoints):
            prim = UsdGeom.Xform.Define(stage, f"{root}/link_{self.name(i)}")
            pose = self.poses[i]
            prim.AddTranslateOp().Set(Gf.Vec3d(*(float(x) for x in pose.translation / self.meters)))
            prim.AddOrientOp().Set(quaternion(pose.rotation))
            if mass:
                self.mass(stage, root, i)

    def mass(self, stage, root, i):
        prim = stage.OverridePrim(f"{root}/link_{self.name(i)}")
        UsdPhysics.RigidBodyAPI.Apply(prim)
        api = UsdPhysics.MassAPI.Apply(prim)
        if motion(self.model, i)[0] == "free":
            UsdPhysics.ArticulationRootAPI.Apply(prim)
        inertia = self.offsets[i].actInv(self.model.inertias[i])
        moments, axes = np.linalg.eigh(inertia.inertia)
        axes = axes * np.linalg.det(axes)
        unit = self.kilograms * self.meters**2
        api.CreateMassAttr(float(inertia.mass / self.kilograms))
        api.CreateCenterOfMassAttr(vector(inertia.lever / self.meters))
        api.CreateDiagonalInertiaAttr(vector(moments / unit))
        api.CreatePrincipalAxesAttr(quaternion(axes))

    def joints(self, stage, root):
        for i in range(1, self.model.njoints):
            self.joint(stage, root, i)

    def joint(self, stage, root, i):
        kind, axis = motion(self.model, i)
        if kind == "free":
            return
        path = f"{root}/joints/{self.name(i)}"
        turn = np.eye(3)
        if kind == "spherical":
            joint = UsdPhysics.SphericalJoint.Define(stage, path)
        else:
            make = UsdPhysics.RevoluteJoint if kind == "revolute" else UsdPhysics.PrismaticJoint
            joint = make.Define(stage, path)
            letter = int(self.rng.integers(3))
            joint.CreateAxisAttr("XYZ"[letter])
            turn = np.roll(aligned(axis), letter, axis=1)
            unit = 180 / np.pi if kind == "revolute" else 1 / self.meters
            lower = self.model.lowerPositionLimit[self.model.joints[i].idx_q]
            if np.isfinite(lower) and abs(lower) < 1e10:
                joint.CreateLowerLimitAttr(float(lower * unit))
        frame = pin.SE3(turn, np.zeros(3))
        parent = self.model.parents[i]
        ends = [(parent, self.model.jointPlacements[i] * frame), (i, self.offsets[i].inverse() * frame)]
        if parent > 0:
            ends[0] = (parent, self.offsets[parent].inverse() * ends[0][1])
        reverse = self.reverse[i] and kind != "spherical"
        self.signs[self.name(i)] = -1 if reverse else 1
        if reverse:
            ends.reverse()
        for side, (body, pose) in enumerate(ends):
            if body > 0:
                rel = joint.CreateBody0Rel() if side == 0 else joint.CreateBody1Rel()
                rel.SetTargets([Sdf.Path(f"{root}/link_{self.name(body)}")])
            position = vector(pose.translation / self.meters)
            (joint.CreateLocalPos0Attr if side == 0 else joint.CreateLocalPos1Attr)(position)
            (joint.CreateLocalRot0Attr if side == 0 else joint.CreateLocalRot1Attr)(quaternion(pose.rotation))

    def scene(self, stage, up="Z", gravity=True):
        UsdGeom.SetStageMetersPerUnit(stage, self.meters)
        UsdPhysics.SetStageKilogramsPerUnit(stage, self.kilograms)
        UsdGeom.SetStageUpAxis(stage, up)
        if gravity:
            scene = UsdPhysics.Scene.Define(stage, "/physicsScene")
            scene.CreateGravityDirectionAttr(Gf.Vec3f(0, 0, -1))
            scene.CreateGravityMagnitudeAttr(9.81 / self.meters)


def samples(model, writer, rng):
    data = model.createData()
    out = []
    for _ in range(SAMPLES):
        q = pin.integrate(model, pin.neutral(model), rng.uniform(-1, 1, model.nv))
        v, a = rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, model.nv)
        tau = pin.rnea(model, data, q, v, a)
        joints = {}
        for i in range(1, model.njoints):
            j = model.joints[i]
            name = "root" if motion(model, i)[0] == "free" else writer.name(i)
            sign = writer.signs.get(name, 1)
            at = slice(j.idx_v, j.idx_v + j.nv)
            joints[name] = {
                "q": (sign * q[j.idx_q : j.idx_q + j.nq]).tolist(),
                "v": (sign * v[at]).tolist(),
                "a": (sign * a[at]).tolist(),
                "tau": (sign * tau[at]).tolist(),
            }
        out.append(joints)
    return out


def described(path, model, writer, rng):
    masses = {f"link_{writer.name(i)}": model.inertias[i].mass for i in range(1, model.njoints)}
    print(json.dumps({"path": path, "masses": masses, "samples": samples(model, writer, rng)}), flush=True)


def plain(folder, name, model, rng):
    """Writes one file of each format."""
    for ending, simple, meters, kilograms in [("usda", True, 1, 1), ("usdc", False, 0.01, 1), ("usda", False, 1, 0.001)]:
        writer = Writer(model, rng, simple, meters, kilograms)
        path = os.path.join(folder, f"{name}_{meters}_{kilograms}.{ending}")
        stage = Usd.Stage.CreateNew(path)
        stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/robot").GetPrim())
        writer.scene(stage)
        writer.bodies(stage, "/robot")
        writer.joints(stage, "/robot")
        if motion(model, 1)[0] != "free":
            UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath("/robot"))
        stage.Save()
        described(path, model, writer, rng)
        if ending == "usdc":
            package = path[:-1] + "z"
            assert UsdUtils.CreateNewUsdzPackage(path, package)
            described(package, model, writer, rng)


def composed(folder, name, model, rng, binary):
    """Writes a composed scene as Isaac Sim does: bodies in one file, physics in others, combined by composition arcs."""
    writer = Writer(model, rng, False)
    ending = "usdc" if binary else "usda"
    os.makedirs(os.path.join(folder, name, "parts"), exist_ok=True)
    file = lambda part: os.path.join(folder, name, f"{part}.{ending}")
    base = Usd.Stage.CreateNew(file("parts/base"))
    base.SetDefaultPrim(UsdGeom.Xform.Define(base, "/robot").GetPrim())
    writer.bodies(base, "/robot", mass=False)
    base.Save()
    masses = Usd.Stage.CreateNew(file("parts/masses"))
    masses.SetDefaultPrim(masses.OverridePrim("/robot"))
    for i in range(1, model.njoints):
        writer.mass(masses, "/robot", i)
    masses.Save()
    physics = Usd.Stage.CreateNew(file("parts/physics"))
    physics.GetRootLayer().subLayerPaths.append(f"./masses.{ending}")
    physics.SetDefaultPrim(physics.OverridePrim("/robot"))
    writer.joints(physics, "/robot")
    physics.Save()
    # A robot with variants: `rigid` adds joints and masses, `heavy` adds wrong masses.
    robot = Usd.Stage.CreateNew(file("robot"))
    top = UsdGeom.Xform.Define(robot, "/robot").GetPrim()
    robot.SetDefaultPrim(top)
    top.GetReferences().AddReference(f"./parts/base.{ending}")
    variants = top.GetVariantSets().AddVariantSet("Physics")
    for choice in ["none", "rigid", "heavy"]:
        variants.AddVariant(choice)
    variants.SetVariantSelection("none")
    variants.SetVariantSelection("rigid")
    with variants.GetVariantEditContext():
        top.GetPayloads().AddPayload(f"./parts/physics.{ending}")
    variants.SetVariantSelection("heavy")
    with variants.GetVariantEditContext():
        top.GetPayloads().AddPayload(f"./parts/physics.{ending}")
        for i in range(1, model.njoints):
            over = robot.OverridePrim(f"/robot/link_{writer.name(i)}")
            over.CreateAttribute("physics:mass", Sdf.ValueTypeNames.Float).Set(1e6)
    variants.SetVariantSelection("none")
    robot.Save()
    # The scene references the robot under another prim and selects the variant.
    world = Usd.Stage.CreateNew(file("world"))
    writer.scene(world)
    UsdGeom.Xform.Define(world, "/World")
    prim = UsdGeom.Xform.Define(world, "/World/arm").GetPrim()
    prim.GetReferences().AddReference(f"./robot.{ending}")
    prim.GetVariantSets().GetVariantSet("Physics").SetVariantSelection("rigid")
    # A deactivated prim, and a class that defines the density of the last link.
    UsdGeom.Xform.Define(world, "/World/spare").GetPrim().SetActive(False)
    world.CreateClassPrim("/_class_last")
    last = writer.name(model.njoints - 1)
    klass = world.GetPrimAtPath("/_class_last")
    UsdPhysics.MassAPI.Apply(klass)
    world.GetPrimAtPath(f"/World/arm/link_{last}").GetInherits().AddInherit("/_class_last")
    UsdPhysics.MassAPI(klass).CreateDensityAttr(5.0)
    world.Save()
    described(file("world"), model, writer, rng)


def shapes(folder):
    """Writes a body with collision shapes and prints the mass properties that UsdPhysics computes."""
    path = os.path.join(folder, "shapes.usda")
    stage = Usd.Stage.CreateNew(path)
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdGeom.SetStageUpAxis(stage, "Z")
    body = UsdGeom.Xform.Define(stage, "/body")
    body.AddScaleOp().Set(Gf.Vec3f(2, 2, 2))
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    UsdPhysics.MassAPI.Apply(body.GetPrim()).CreateDensityAttr(500)
    box = UsdGeom.Cube.Define(stage, "/body/box")
    box.AddTranslateOp().Set((0.5, 0.1, 0))
    box.AddRotateXYZOp().Set(Gf.Vec3f(10, 20, 30))
    box.AddScaleOp().Set(Gf.Vec3f(1, 2, 3))
    box.CreateSizeAttr(0.1)
    ball = UsdGeom.Sphere.Define(stage, "/body/ball")
    ball.AddTranslateOp().Set((0, 0.5, 0))
    ball.CreateRadiusAttr(0.1)
    UsdPhysics.MassAPI.Apply(ball.GetPrim()).CreateMassAttr(3.0)
    rod = UsdGeom.Cylinder.Define(stage, "/body/rod")
    rod.CreateRadiusAttr(0.05)
    rod.CreateHeightAttr(0.4)
    rod.CreateAxisAttr("X")
    for shape in [box, ball, rod]:
        UsdPhysics.CollisionAPI.Apply(shape.GetPrim())

    def measured(prim):
        """Returns volume, inertia for unit density, and pose of a shape in closed form."""
        out = UsdPhysics.RigidBodyAPI.MassInformation()
        name = prim.GetName()
        if name == "box":
            a, b, c = (0.1 * 2 * s for s in (1, 2, 3))
            volume, moments = a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 12
        elif name == "ball":
            volume, moments = 4 / 3 * np.pi * 0.2**3, np.full(3, 0.4 * 0.2**2)
        else:
            r, h = 0.1, 0.8
            volume, moments = np.pi * r * r * h, np.array([r * r / 2] + 2 * [r * r / 4 + h * h / 12])
        out.volume = volume
        out.inertia = Gf.Matrix3f(*np.diag(moments * volume).ravel().astype(float).tolist())
        matrix = UsdGeom.XformCache().GetLocalToWorldTransform(prim).RemoveScaleShear()
        out.localPos = Gf.Vec3f(matrix.ExtractTranslation())
        out.localRot = Gf.Quatf(matrix.ExtractRotationQuat())
        out.centerOfMass = Gf.Vec3f(0)
        return out

    mass, moments, com, axes = UsdPhysics.RigidBodyAPI(body.GetPrim()).ComputeMassProperties(measured)
    axes = np.array(Gf.Matrix3d(axes)).T
    tensor = axes @ np.diag(moments) @ axes.T
    stage.Save()
    print(json.dumps({"path": path, "shapes": {"mass": mass, "com": list(com), "tensor": tensor.ravel().tolist()}}))


def main():
    folder = sys.argv[1]
    pin.seed(1)
    rng = np.random.default_rng(1)
    prefix = pathlib.Path(pin.__file__).parents[4]
    robots = prefix / "share" / "example-robot-data" / "robots"
    for name, file, floats in ROBOTS:
        path = str(robots / file)
        model = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()) if floats else pin.buildModelFromUrdf(path)
        plain(folder, name, model, rng)
        composed(folder, name, model, rng, binary=floats)
    for seed in range(4):
        plain(folder, f"tree{seed}", random_tree(rng, 6 + seed), rng)
        composed(folder, f"trees{seed}", random_tree(rng, 6 + seed), rng, binary=seed % 2 == 0)
    shapes(folder)


main()
