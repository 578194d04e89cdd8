"""Runs the program: ``python -m inertial`` is ``inertial``, if the program is installed beside the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig


def main() -> int:
    """Runs the program with the arguments of this process."""
    folder = sysconfig.get_path("scripts")
    program = shutil.which("inertial", path=folder) or shutil.which("inertial")
    if program is None:
        print("inertial: the program is not installed: cargo install inertial-cli", file=sys.stderr)
        return 2
    if os.name == "posix":
        os.execv(program, [program, *sys.argv[1:]])
    return subprocess.run([program, *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
