#!/usr/bin/env python3
"""Compares our kernels with Pinocchio's C++ kernels, alternating in one process on the same URDFs.

Needs a C++ compiler and the environment of scripts/python-env.sh (or INERTIAL_PYTHON) with PyPI's `pin` and
`example-robot-data`. Eigen's headers, which `pin` needs but does not ship, come from PyPI's `cmeel-eigen`.
The shim is compiled with the flags of the wheel: -O3 -DNDEBUG for plain x86-64.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "pinocchio"
EIGEN = "cmeel-eigen==3.4.1"
# Definitions of Pinocchio's CMake targets.
DEFINES = [
    "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION",
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
]


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.strip()


def build(python, prefix):
    """Compiles shim.cpp unless an up-to-date library exists."""
    library = WORK / "libshim.so"
    source = HERE / "shim.cpp"
    if library.exists() and library.stat().st_mtime > source.stat().st_mtime:
        return library
    eigen = WORK / "eigen"
    if not eigen.exists():
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", eigen, EIGEN], check=True)
    headers = next(eigen.glob("**/include/eigen3"))
    print("compiling shim.cpp (takes about a minute)", file=sys.stderr)
    command = ["c++", "-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", *DEFINES]
    command += [f"-I{prefix}/include", f"-I{headers}", str(source), "-o", str(library)]
    command += [f"-L{prefix}/lib", "-lpinocchio_default", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(command, check=True)
    return library


def without_fingers(urdf):
    """Writes a URDF of the Panda arm with fixed fingers."""
    text = urdf.read_text()
    text = re.sub(r'(<joint name="panda_finger_joint\d" type=)"prismatic"', r'\1"fixed"', text)
    text = re.sub(r"<mimic[^>]*/>", "", text)
    out = WORK / "panda_arm.urdf"
    out.write_text(text)
    return out


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    python = output(str(ROOT / "scripts" / "python-env.sh"))
    packages = output(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])")
    prefix = pathlib.Path(packages) / "cmeel.prefix"
    robots = prefix / "share" / "example-robot-data" / "robots"
    library = build(python, prefix)
    arguments = [
        f"ur5:fixed:{robots / 'ur_description/urdf/ur5_robot.urdf'}",
        f"panda:fixed:{without_fingers(robots / 'panda_description/urdf/panda.urdf')}",
        f"go1:floating:{robots / 'go1_description/urdf/go1.urdf'}",
        f"talos:floating:{robots / 'talos_data/robots/talos_reduced.urdf'}",
    ]
    command = ["cargo", "run", "--quiet", "--release", "-p", "inertial-bench-pinocchio", "--", str(library)]
    return subprocess.run(command + arguments, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
