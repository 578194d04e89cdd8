"""Projective geometric algebra: points, lines, planes and motors.

A line is also a twist or a wrench, and the power of a wrench along a twist is their :meth:`Line.wedge`. Joint lines, points
of bodies and the lines along which points are accelerated make up the regressor of
:meth:`inertial.Mechanism.tetrahedral_regressor`.

>>> from inertial import pga
>>> axis = pga.Line.through([0, 0, 0], [0, 0, 1])
>>> quarter = pga.Motor.exp(pga.Line([0, 0, 1.5707963267948966], [0, 0, 0]))
>>> [round(x, 12) + 0.0 for x in quarter.transform(pga.Point([1, 0, 0])).position]
[0.0, 1.0, 0.0]
>>> axis.wedge(pga.Line.through([0, 0, 5], [1, 0, 0]))  # lines that meet
0.0
"""

from ._inertial import Line, Motor, Plane, Point

__all__ = ["Line", "Motor", "Plane", "Point"]
