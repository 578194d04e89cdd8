#!/usr/bin/env python3
"""Writes one log as arrays of NumPy and MATLAB (scipy), lists of Parquet (pyarrow) and as bags of ROS 2 (rosbags), for the tests of the readers.

usage: scripts/write_arrays.py FOLDER      (exit status 77 where a package is missing)
"""
import pathlib
import sys

try:
    import numpy
    import pyarrow
    import pyarrow.parquet
    import scipy.io
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

ROWS = 5000
JOINTS = ["shoulder", "elbow", "slide"]


def main():
    folder = pathlib.Path(sys.argv[1])
    t = 0.004 * numpy.arange(ROWS)
    q, dq, tau = (numpy.stack([a * numpy.sin((k + 1.5) * t + k) for k in range(3)], axis=1) for a in (1.0, 3.0, 10.0))
    numpy.savetxt(folder / "plain.csv", numpy.column_stack([t, q, dq, tau]), fmt="%.17g", delimiter=",", comments="",
                  header=",".join(["t"] + [f"{name}{k}" for name in ("q", "dq", "tau") for k in (1, 2, 3)]))
    arrays = {"t": t, "q": q, "dq": dq, "tau": tau}
    numpy.savez(folder / "plain.npz", **arrays, gains=numpy.ones(7), mode=numpy.array(["run"]))
    numpy.savez_compressed(folder / "packed.npz", **arrays)
    numpy.savez(folder / "fortran.npz", t=t, q=numpy.asfortranarray(q), dq=dq.T, tau=tau.astype(">f8"))
    named = {"timestamp": t, "position": q, "velocity": dq, "effort": tau, "joint_names": numpy.array(JOINTS)}
    numpy.savez(folder / "named.npz", **named)
    numpy.savez(folder / "narrow.npz", t=t.astype("f4"), q=(1000 * q).astype("i2"), tau=tau.astype("f4"))
    records = numpy.zeros(ROWS, dtype=[("t", "f8"), ("mode", "U4"), ("q", "f8", (3,)), ("dq", "f8", (3,)), ("tau", "f8", (3,))])
    for name, values in arrays.items():
        records[name] = values
    numpy.save(folder / "records.npy", records)
    numpy.save(folder / "matrix.npy", numpy.column_stack([t, q, dq, tau]))
    scipy.io.savemat(folder / "plain.mat", arrays)
    scipy.io.savemat(folder / "packed.mat", {**arrays, "comment": "text", "s": [1]}, do_compression=True)
    scipy.io.savemat(folder / "struct.mat", {"data": {"time": t, "q": q.T, "dq": dq, "tau": tau, "info": {"rate": 250.0}}})
    # As datasets of LeRobot have it: lists of fixed and of any length.
    lists = {"timestamp": t, "observation.state": list(q), "observation.velocity": list(dq),
             "observation.effort": pyarrow.FixedSizeListArray.from_arrays(tau.ravel(), 3), "task": ["x"] * ROWS}
    pyarrow.parquet.write_table(pyarrow.table(lists), folder / "lists.parquet", row_group_size=700)
    uneven = pyarrow.table({"t": t[:3], "q": [[1.0, 2.0], [1.0], [1.0, 2.0]]})
    pyarrow.parquet.write_table(uneven, folder / "uneven.parquet")
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    state, header, stamp = (types[n] for n in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    text = types["std_msgs/msg/String"]
    for name, plugin in (("bag_db3", StoragePlugin.SQLITE3), ("bag_mcap", StoragePlugin.MCAP)):
        with Writer(folder / name, version=8, storage_plugin=plugin) as writer:
            topic = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
            other = writer.add_connection("/chatter", text.__msgtype__, typestore=store)
            for i in range(ROWS):
                time = round(t[i] * 1e9)
                values = state(header(stamp(time // 10**9, time % 10**9), "base"), JOINTS, q[i], dq[i], tau[i])
                writer.write(topic, time, store.serialize_cdr(values, state.__msgtype__))
                if i % 1000 == 0:
                    # Longer than a page: it continues on pages of its own.
                    writer.write(other, time, store.serialize_cdr(text("x" * 10_000), text.__msgtype__))


main()
