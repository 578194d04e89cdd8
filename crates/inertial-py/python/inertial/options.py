"""Options of the functions, as keyword arguments. A test checks that names and values agree with the types in Rust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, Union

Path = Union[str, "PathLike[str]"]
#: Names, as a sequence or as a text as on the command line ("elbow,wrist").
Names = Union[Sequence[str], str]
#: Numbers by name, as a mapping or as texts as on the command line ("elbow=0.5", ["elbow=0.5", "wrist=0"]).
Settings = Union[Mapping[str, float], Sequence[str], str]
#: Arguments of a xacro file, as a mapping or as texts as on the command line ("prefix:=left_").
Arguments = Union[Mapping[str, Any], Sequence[str], str]
Measured = Literal["joint-torques", "base-wrench", "both", "momentum"]


class ModelOptions(TypedDict, total=False):
    """Options of a model."""

    base: Literal["fixed", "floating"]
    gravity: Sequence[float]
    rotors: Literal["none", "symmetric", "general"]
    lock: Settings
    xacro_arg: Arguments
    strict: bool


class LogOptions(TypedDict, total=False):
    """Options of the preparation of logs."""

    cutoff: Union[float, Literal["auto", "off"]]
    filter: Literal["butterworth", "savitzky-golay", "off"]
    filter_order: int
    filter_window: int
    rate: float
    resample: float
    lag: float
    decimate: int
    columns: Union[Path, Mapping[str, Any]]
    topic: str
    slow: float
    joints: Names
    trust_units: bool


class CheckOptions(ModelOptions, total=False):
    """Options of :func:`inertial.check`."""

    all: bool
    fix: bool
    out: Path
    report: Path
    tolerance: float


class ColumnsOptions(ModelOptions, total=False):
    """Options of :func:`inertial.columns`."""

    columns: Union[Path, Mapping[str, Any]]
    topic: str
    rate: float
    out: Path


class AnalyzeOptions(ModelOptions, total=False):
    """Options of :func:`inertial.analyze`."""

    measured: Measured
    ballistic: bool
    total_momentum: Literal["zero", "angular", "any"]
    joints: Names
    static: bool
    kinetic: bool
    method: Literal["auto", "rpna", "drng", "numeric", "exact"]
    snap: float
    choose: Names
    compare: Any
    explain: bool
    csv: Union[bool, str]
    latex: bool
    out: Path
    report: Path
    plots: Path
    seed: int


class DesignOptions(ModelOptions, total=False):
    """Options of :func:`inertial.design`."""

    duration: float
    rate: float
    trajectory: Literal["fourier", "spline", "velocity", "cycloid", "quintic"]
    harmonics: int
    intervals: int
    seeds: Sequence[float]
    combinations: Literal["first", "best", "printed", "refreshed", "counted"]
    criterion: Literal["d", "a", "e", "crb", "worst", "condition", "scaled-condition", "paper"]
    weight: float
    measured: Measured
    joints: Names
    noise: Settings
    friction: Literal["auto", "none", "viscous", "coulomb", "coulomb+viscous", "asymmetric", "stribeck"]
    stribeck: Sequence[float]
    offset: Union[bool, Literal["auto", "yes", "no"]]
    prior_summary: Any
    acceleration: float
    velocity: float
    margin: float
    start: Sequence[float]
    workspace: Sequence[float]
    ground: float
    link_radius: float
    self_collision: bool
    clearance: float
    base_motion: Sequence[float]
    robust: Any
    robust_by: Literal["mean", "worst"]
    starts: int
    iterations: int
    time_limit: float
    seed: int
    out: Union[Path, Iterable[Path]]
    report: Path
    plots: Path


class ExportOptions(ModelOptions, total=False):
    """Options of :func:`inertial.export`."""

    to: Literal[
        "c", "ur", "franka", "franka-desk", "kuka", "ros2-control", "mujoco", "gazebo", "pinocchio", "drake"
    ]
    values: Any
    link: str
    frame: str
    name: str
    inertias: Literal["base", "all"]
    out: Path


class SimulateOptions(ModelOptions, total=False):
    """Options of :func:`inertial.simulate`."""

    forward: bool
    waypoints: bool
    measured: Measured
    joints: Names
    force_sensor: str
    rate: float
    noise: Settings
    bias: Settings
    quantum: Settings
    seed: int
    friction: Literal["model", "none"]
    momentum: Sequence[float]
    pose: Literal["exact", "trapezoid", "euler"]
    ignore_limits: bool
    out: Path


class UnknownsOptions(ModelOptions, LogOptions, total=False):
    """Options of :class:`inertial.Summary`: the unknowns, and the preparation of logs."""

    measured: Measured
    friction: Literal["auto", "none", "viscous", "coulomb", "coulomb+viscous", "asymmetric", "stribeck"]
    coupling: Literal["auto", "none"]
    joint_model: Path
    offset: Union[bool, Literal["auto", "yes", "no"]]


class FleetOptions(TypedDict, total=False):
    """Options of :func:`inertial.identify_fleet`: the estimation of the unknowns."""

    estimator: Literal["ols", "wls", "irls", "consistent", "eiv", "bcls", "lmi", "manifold", "log-cholesky"]
    solver: Literal["barrier", "manifold", "log-cholesky"]
    prior: Any
    prior_weight: float
    prior_kind: Literal["entropic", "euclidean"]
    bounds: Path
    essential: bool
    covariance: bool
    bounds_on: Union[Sequence[Literal["m", "com", "h", "I", "base"]], str]
    noise_bound: Union[float, Mapping[str, float], Sequence[str], str]
    posterior: bool
    time_limit: float
    out: Path


class EstimateOptions(FleetOptions, total=False):
    """Options of :meth:`inertial.Summary.identify`: the estimation of the unknowns."""

    report: Path
    plots: Path


class IdentifyOptions(UnknownsOptions, EstimateOptions, total=False):
    """Options of :func:`inertial.identify`."""

    noise: Settings
    positions: Literal["log", "trapezoid", "euler"]
    validate: Union[Any, Iterable[Any]]
    holdout: float
    summary_out: Path
    force: bool
    payload: str
    unloaded: Union[Any, Iterable[Any]]
    gains: float
    loaded: Union[Any, Iterable[Any]]
    known_payload: str


class ValidateOptions(ModelOptions, LogOptions, total=False):
    """Options of :func:`inertial.validate`."""

    measured: Measured
    threshold: float
    report: Path
    plots: Path


