#!/usr/bin/env python3
"""Writes one log in several formats for the tests of the readers.

The formats are NumPy, MATLAB (scipy) and HDF5 (h5py) arrays, Parquet lists (pyarrow), LeRobot datasets, and ROS 1 and 2 bags (rosbags).

usage: scripts/write_arrays.py FOLDER      (exit status 77 if a package is missing)
"""
import json
import pathlib
import sys

try:
    import h5py
    import numpy
    import pyarrow
    import pyarrow.parquet
    import scipy.io
    from rosbags.rosbag1 import Writer as Ros1Writer
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
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
    numpy.savez(folder / "groups.npz", **{"t": t, "base.x": q[:, 0], "ft.fx": q[:, 1], "log.wrench.tz": q[:, 2], "log.note": dq[:, 0]})
    numpy.savez(folder / "narrow.npz", t=t.astype("f4"), q=(1000 * q).astype("i2"), tau=tau.astype("f4"))
    records = numpy.zeros(ROWS, dtype=[("t", "f8"), ("mode", "U4"), ("q", "f8", (3,)), ("dq", "f8", (3,)), ("tau", "f8", (3,))])
    for name, values in arrays.items():
        records[name] = values
    numpy.save(folder / "records.npy", records)
    numpy.save(folder / "matrix.npy", numpy.column_stack([t, q, dq, tau]))
    scipy.io.savemat(folder / "plain.mat", arrays)
    scipy.io.savemat(folder / "packed.mat", {**arrays, "comment": "text", "s": [1]}, do_compression=True)
    scipy.io.savemat(folder / "struct.mat", {"data": {"time": t, "q": q.T, "dq": dq, "tau": tau, "info": {"rate": 250.0}}})
    # Lists of fixed and variable length, as in LeRobot datasets.
    lists = {"timestamp": t, "observation.state": list(q), "observation.velocity": list(dq),
             "observation.effort": pyarrow.FixedSizeListArray.from_arrays(tau.ravel(), 3), "task": ["x"] * ROWS}
    pyarrow.parquet.write_table(pyarrow.table(lists), folder / "lists.parquet", row_group_size=700)
    # Names of joints beside their numbers, in another order than the joints of the model: lists, and text columns.
    order = [2, 0, 1]
    listed = {"time": t, "name": [[JOINTS[k] for k in order]] * ROWS, "position": list(q[:, order]), "velocity": list(dq[:, order]),
              "effort": list(tau[:, order])}
    pyarrow.parquet.write_table(pyarrow.table(listed), folder / "names.parquet")
    texts = {"time": t} | {f"name_{i}": [JOINTS[k]] * ROWS for i, k in enumerate(order)}
    texts |= {f"{name}_{i}": values[:, k] for name, values in (("position", q), ("velocity", dq), ("effort", tau)) for i, k in enumerate(order)}
    pyarrow.parquet.write_table(pyarrow.table(texts), folder / "name_columns.parquet", compression="zstd")
    flat = pyarrow.table({"t": t} | {f"{name}{k + 1}": values[:, k] for name, values in (("q", q), ("dq", dq), ("tau", tau)) for k in range(3)})
    for codec in ("zstd", "lz4", "snappy", "gzip"):
        for version in ("1.0", "2.0"):
            # Pages with and without dictionaries.
            path = folder / f"{codec}_{version}.parquet"
            pyarrow.parquet.write_table(flat, path, compression=codec, data_page_version=version, use_dictionary=version == "1.0", row_group_size=700)
    pyarrow.parquet.write_table(flat, folder / "brotli.parquet", compression="brotli")
    uneven = pyarrow.table({"t": t[:3], "q": [[1.0, 2.0], [1.0], [1.0, 2.0]]})
    pyarrow.parquet.write_table(uneven, folder / "uneven.parquet")
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    state, header, stamp = (types[n] for n in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    text = types["std_msgs/msg/String"]
    for name, plugin, mode in (
        ("bag_db3", StoragePlugin.SQLITE3, CompressionMode.NONE),
        ("bag_db3_file", StoragePlugin.SQLITE3, CompressionMode.FILE),
        ("bag_db3_message", StoragePlugin.SQLITE3, CompressionMode.MESSAGE),
        ("bag_mcap", StoragePlugin.MCAP, CompressionMode.NONE),
        ("bag_mcap_file", StoragePlugin.MCAP, CompressionMode.FILE),
        ("bag_mcap_chunks", StoragePlugin.MCAP, CompressionMode.STORAGE),
    ):
        bag = Writer(folder / name, version=8, storage_plugin=plugin)
        bag.set_compression(mode, CompressionFormat.ZSTD)
        with bag as writer:
            topic = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
            other = writer.add_connection("/chatter", text.__msgtype__, typestore=store)
            for i in range(ROWS):
                time = round(t[i] * 1e9)
                values = state(header(stamp(time // 10**9, time % 10**9), "base"), JOINTS, q[i], dq[i], tau[i])
                writer.write(topic, time, store.serialize_cdr(values, state.__msgtype__))
                if i % 1000 == 0:
                    # Longer than a database page, so that it continues on overflow pages.
                    writer.write(other, time, store.serialize_cdr(text("x" * 10_000), text.__msgtype__))
    names_of_joints(folder, t, q[:, order], dq[:, order], tau[:, order], [JOINTS[k] for k in order])
    hdf5(folder, arrays)
    datasets(folder, t, q, dq, tau)
    bags_of_ros1(folder, t, q, dq, tau)


def hdf5(folder, arrays):
    """Writes HDF5 in the old and the new layout, and as MATLAB 7.3 (column-major, with a MATLAB header)."""
    with h5py.File(folder / "plain.h5", "w") as file:
        for name, values in arrays.items():
            file[f"log/{name}"] = values
        file["log/joint_names"] = JOINTS
        file["camera"] = numpy.zeros((4, 5, 6), dtype="u1")
    with h5py.File(folder / "packed.h5", "w", libver="latest") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values, chunks=True, compression="gzip", shuffle=True)
    with h5py.File(folder / "lzf.h5", "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values, chunks=True, compression="lzf", shuffle=name != "q")
        # Constant and random data: long repetitions, and chunks that are stored as they are.
        file.create_dataset("zero", data=numpy.zeros(ROWS), compression="lzf")
    with h5py.File(folder / "records.h5", "w") as file:
        kinds = [(name, ">f8" if name == "q" else "f8", values.shape[1:]) for name, values in arrays.items()]
        records = numpy.zeros(ROWS, dtype=[("mode", "S3"), *kinds])
        for name, values in arrays.items():
            records[name] = values
        file.create_dataset("log", data=records, chunks=True, compression="gzip")
    # Half precision and three dimensions are not read.
    others = {"t": arrays["t"], "q": arrays["q"].astype("f2"), "tau": arrays["tau"][:, :, None]}
    numpy.savez(folder / "others.npz", **others)
    with h5py.File(folder / "others.h5", "w") as file:
        for name, values in others.items():
            file[name] = values
    with h5py.File(folder / "uneven.h5", "w") as file:
        for name, values in arrays.items():
            file[name] = values[:-1] if name == "q" else values
    with h5py.File(folder / "v73.mat", "w", userblock_size=512) as file:
        for name, values in arrays.items():
            own = file.create_dataset(name, data=numpy.atleast_2d(values.T), chunks=True, compression="gzip")
            own.attrs["MATLAB_class"] = numpy.bytes_("double")
        comment = file.create_dataset("comment", data=numpy.frombuffer("text".encode("utf-16-le"), dtype="u2").reshape(-1, 1))
        comment.attrs["MATLAB_class"] = numpy.bytes_("char")
    with open(folder / "v73.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def names_of_joints(folder, t, q, dq, tau, names):
    """Writes names of joints in all types beside arrays in the same order."""
    arrays = {"t": t, "q": q, "dq": dq, "tau": tau}
    numpy.savez(folder / "names_bytes.npz", **arrays, joint_names=numpy.array(names, dtype="S"), link_names=numpy.array(["x", "y", "z"]))
    numpy.savez(folder / "names_text.npz", **arrays, names=str(names))
    numpy.savez(folder / "names_objects.npz", **arrays, joint_names=numpy.array(names, dtype=object))
    numpy.savez(folder / "names_object.npz", **arrays, joint_names=numpy.array({"names": names}, dtype=object))
    numpy.savez(folder / "other_objects.npz", **arrays, file_names=numpy.array(["x", "y"], dtype=object))
    numpy.savez(folder / "names_numbers.npz", t=t, **{f"{key}{i + 1}": arrays[key][:, i] for key in ("q", "dq", "tau") for i in range(3)},
                joint_names=numpy.array(names))
    scipy.io.savemat(folder / "names_char.mat", {**arrays, "joint_names": names})
    scipy.io.savemat(folder / "names_cell.mat", {**arrays, "joint_names": numpy.array(names, dtype=object)})
    scipy.io.savemat(folder / "names_packed.mat", {"log": {**arrays, "joint_names": numpy.array(names, dtype=object)}}, do_compression=True)
    with h5py.File(folder / "names_attribute.h5", "w") as file:
        for name, values in arrays.items():
            file[name] = values
        file["q"].attrs["names"] = names
    with h5py.File(folder / "names_bytes.h5", "w") as file:
        for name, values in arrays.items():
            file[name] = values
            if name != "t":
                file[name].attrs["names"] = numpy.array(names, dtype="S")
    with h5py.File(folder / "names_group.h5", "w") as file:
        for name, values in arrays.items():
            file[f"log/{name}"] = values
        file["log"].attrs["joint_names"] = names
    for kind in ("char", "cell"):
        with h5py.File(folder / f"names_{kind}_73.mat", "w", userblock_size=512) as file:
            for name, values in arrays.items():
                file.create_dataset(name, data=numpy.atleast_2d(values.T)).attrs["MATLAB_class"] = numpy.bytes_("double")
            units = lambda text: numpy.frombuffer(text.encode("utf-16-le"), dtype="u2")  # noqa: E731
            if kind == "char":
                width = max(map(len, names))
                own = file.create_dataset("joint_names", data=numpy.stack([units(name.ljust(width)) for name in names], axis=1))
            else:
                cells = [file.create_dataset(f"#refs#/{i}", data=units(name).reshape(-1, 1)) for i, name in enumerate(names)]
                own = file.create_dataset("joint_names", data=numpy.array([[cell.ref for cell in cells]], dtype=h5py.ref_dtype).T, dtype=h5py.ref_dtype)
            own.attrs["MATLAB_class"] = numpy.bytes_(kind)
        with open(folder / f"names_{kind}_73.mat", "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def datasets(folder, t, q, dq, tau):
    """Writes LeRobot datasets: one file per episode (2.1), or several episodes per file (3.0)."""
    half = ROWS // 2
    for name, files in (("lerobot_v2", [slice(0, half), slice(half, ROWS)]), ("lerobot_v3", [slice(0, ROWS)])):
        root = folder / name
        (root / "meta").mkdir(parents=True)
        (root / "data" / "chunk-000").mkdir(parents=True)
        feature = {"dtype": "float64", "shape": [3], "names": {"motors": JOINTS}}
        plain = {"dtype": "float64", "shape": [3], "names": JOINTS}
        features = {"observation.state": feature, "observation.velocity": plain, "observation.effort": plain,
                    "timestamp": {"dtype": "float32", "shape": [1], "names": None}}
        (root / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v2.1", "fps": 250, "features": features}))
        for k, rows in enumerate(files):
            index = numpy.arange(rows.start, rows.stop)
            episode = index // half
            table = pyarrow.table({"observation.state": list(q[rows]), "observation.velocity": list(dq[rows]),
                                   "observation.effort": list(tau[rows]), "timestamp": t[index % half],
                                   "frame_index": index % half, "episode_index": episode, "index": index})
            pyarrow.parquet.write_table(table, root / "data" / "chunk-000" / f"episode_{k:06d}.parquet")


def bags_of_ros1(folder, t, q, dq, tau):
    store = get_typestore(Stores.ROS1_NOETIC)
    state, header, stamp, text = (store.types[n] for n in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header",
                                                           "builtin_interfaces/msg/Time", "std_msgs/msg/String"))
    formats = Ros1Writer.CompressionFormat
    for name, packed in (("plain.bag", None), ("bz2.bag", formats.BZ2), ("lz4.bag", formats.LZ4)):
        writer = Ros1Writer(folder / name)
        if packed is not None:
            writer.set_compression(packed)
        with writer:
            other = writer.add_connection("/chatter", text.__msgtype__, typestore=store)
            topic = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
            for i in range(ROWS):
                time = round(t[i] * 1e9) + 10**18
                if i % 1000 == 0:
                    writer.write(other, time, store.serialize_ros1(text("x" * 10_000), text.__msgtype__))
                values = state(header(i, stamp(time // 10**9, time % 10**9), "base"), JOINTS, q[i], dq[i], tau[i])
                writer.write(topic, time, store.serialize_ros1(values, state.__msgtype__))
    with Ros1Writer(folder / "other.bag") as writer:
        other = writer.add_connection("/chatter", text.__msgtype__, typestore=store)
        writer.write(other, 10**18, store.serialize_ros1(text("x"), text.__msgtype__))


main()
