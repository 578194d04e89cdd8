"""The program itself: ``python -m inertial`` is ``inertial``."""

from __future__ import annotations

import signal
import sys

from . import _inertial


def main() -> None:
    """Run the program on the process's arguments."""
    # The program answers Ctrl-C itself; Python would only remember it until the program ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_inertial.main(["inertial", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
