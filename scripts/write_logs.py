#!/usr/bin/env python3
"""Writes one log as CSV, Parquet (pyarrow) and MCAP (mcap-ros2-support), for the tests of the readers.

usage: scripts/write_logs.py FOLDER      (exit status 77 if a package is missing)
"""
import math
import pathlib
import sys

try:
    import pyarrow
    import pyarrow.parquet
    from mcap_ros2.writer import Writer
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

JOINT_STATE = """std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
JOINTS = ["shoulder", "elbow", "slide"]
ROWS = 2500


def main():
    folder = pathlib.Path(sys.argv[1])
    columns = {"t": [0.004 * i for i in range(ROWS)]}
    for quantity, amplitude in (("q", 1.0), ("dq", 3.0), ("tau", 10.0)):
        for k, joint in enumerate(JOINTS):
            columns[f"{quantity}.{joint}"] = [amplitude * math.sin((k + 1.5) * t + k) for t in columns["t"]]
    with open(folder / "log.csv", "w") as out:
        out.write(",".join(columns) + "\n")
        out.writelines(",".join(map(repr, row)) + "\n" for row in zip(*columns.values()))
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "log.parquet", row_group_size=700)
    with open(folder / "log.mcap", "wb") as stream:
        writer = Writer(stream)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", JOINT_STATE)
        for i, t in enumerate(columns["t"]):
            names = JOINTS if i % 3 else JOINTS[::-1]
            values = {q: [columns[f"{q}.{j}"][i] for j in names] for q in ("q", "dq", "tau")}
            nanoseconds = round(t * 1e9)
            message = {
                "header": {"stamp": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}, "frame_id": "base"},
                "name": names, "position": values["q"], "velocity": values["dq"], "effort": values["tau"],
            }
            writer.write_message("/joint_states", schema, message, log_time=nanoseconds, publish_time=nanoseconds, sequence=i)
        writer.finish()


main()
