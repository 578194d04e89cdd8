#!/usr/bin/env python3
"""Writes small seeds of binary log formats for the tests of damaged inputs: four rows of a robot with two joints.

usage: scripts/write_seeds.py [FOLDER]      [default: fuzz/seeds/small]
"""
import gzip
import io
import pathlib
import sys

import h5py
import numpy
import pyarrow
import pyarrow.parquet
import scipy.io
import zstandard
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

ROWS = 4
NAMES = ["t", "q1", "q2", "tau1", "tau2"]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "fuzz" / "seeds" / "small")

    def place(kind, name):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        return folder / kind / name

    t = 0.01 * numpy.arange(ROWS)
    q, tau = (numpy.stack([a * numpy.sin((k + 1.5) * t + k).round(3) for k in range(2)], axis=1) for a in (1.0, 10.0))
    table = numpy.column_stack([t, q, tau])
    text = ",".join(NAMES) + "\n" + "".join(",".join(f"{x:g}" for x in row) + "\n" for row in table)
    place("csv", "comma.csv").write_text(text)
    place("csv", "german.csv").write_text(text.replace(",", ";").replace(".", ","))
    place("csv", "tabs.txt").write_text("# robot: arm\n# rate: 100\n\n" + text.replace(",", "\t") + "\n")
    place("csv", "dates.csv").write_text("timestamp,q1,q2,tau1,tau2\n" + "".join(
        f"2026-11-18T12:00:00.{k}0Z," + ",".join(f'"{x:g}"' for x in row[1:]) + "\n" for k, row in enumerate(table)))
    place("stream", "comma.csv").write_text(text + text.splitlines()[-1].replace("0.03", "0.04") + "\n")
    place("gzip", "log.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    place("gzip", "stored.csv.gz").write_bytes(gzip.compress(text.encode(), compresslevel=0, mtime=0))
    place("zstd", "log.csv.zst").write_bytes(zstandard.compress(text.encode()))
    arrays = {"t": t, "q": q, "tau": tau}
    numpy.savez(place("numpy", "plain.npz"), **arrays)
    numpy.savez_compressed(place("numpy", "packed.npz"), **arrays)
    numpy.save(place("numpy", "matrix.npy"), table.astype("f4"))
    records = numpy.zeros(ROWS, dtype=[("t", "f8"), ("mode", "U2"), ("q", "f8", (2,)), ("tau", ">f4", (2,))])
    for name, values in arrays.items():
        records[name] = values
    numpy.save(place("numpy", "records.npy"), records)
    scipy.io.savemat(place("matlab", "plain.mat"), arrays)
    scipy.io.savemat(place("matlab", "packed.mat"), arrays, do_compression=True)
    scipy.io.savemat(place("matlab", "struct.mat"), {"data": {"time": t, "q": q.T, "tau": tau, "info": {"rate": 100.0}}})
    with h5py.File(place("hdf5", "plain.h5"), "w", libver="latest") as file:
        for name, values in arrays.items():
            file[name] = values
    with h5py.File(place("hdf5", "packed.h5"), "w") as file:
        for name, values in arrays.items():
            file.create_dataset(f"robot/{name}", data=values, chunks=True, compression="gzip", shuffle=True, fletcher32=True)
    with h5py.File(place("hdf5", "lzf.h5"), "w") as file:
        file.create_dataset("log", data=records[["t", "q", "tau"]], chunks=(3,), compression="lzf")
    lists = pyarrow.table({"t": t, "q": list(q), "tau": pyarrow.FixedSizeListArray.from_arrays(tau.ravel(), 2)})
    pyarrow.parquet.write_table(lists, place("parquet", "lists.parquet"), compression="none", store_schema=False)
    flat = pyarrow.table({name: table[:, k] for k, name in enumerate(NAMES)})
    for codec in ("zstd", "lz4", "snappy", "gzip"):
        version = {"zstd": "2.0", "lz4": "2.0"}.get(codec, "1.0")
        pyarrow.parquet.write_table(flat, place("parquet", f"{codec}.parquet"), compression=codec, data_page_version=version,
                                    use_dictionary=codec == "gzip", store_schema=False, write_statistics=False)
    plain = io.BytesIO()
    pyarrow.parquet.write_table(flat, plain, store_schema=False, write_statistics=False)
    place("zstd", "log.parquet.zst").write_bytes(zstandard.compress(plain.getvalue()))
    bags(place, t, q, tau)


def bags(place, t, q, tau):
    """Writes bags with one topic of joint states."""
    import tempfile

    types = get_typestore(Stores.ROS2_HUMBLE)
    first = get_typestore(Stores.ROS1_NOETIC)

    def states(store, ros1):
        kinds = store.types
        for k in range(ROWS):
            stamp = kinds["builtin_interfaces/msg/Time"](sec=10, nanosec=round(1e9 * t[k]))
            head = {"seq": k} if ros1 else {}
            header = kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="", **head)
            yield 10**10 + round(1e9 * t[k]), kinds["sensor_msgs/msg/JointState"](
                header=header, name=["joint1", "joint2"], position=q[k].copy(), velocity=numpy.array([]), effort=tau[k].copy())

    kind = "sensor_msgs/msg/JointState"
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name, storage in (("plain", StoragePlugin.MCAP), ("bag", StoragePlugin.SQLITE3)):
            with Writer(scratch / name, version=8, storage_plugin=storage) as writer:
                connection = writer.add_connection("/joint_states", kind, typestore=types)
                for stamp, message in states(types, False):
                    writer.write(connection, stamp, types.serialize_cdr(message, kind))
        mcap = next((scratch / "plain").glob("*.mcap")).read_bytes()
        place("mcap", "plain.mcap").write_bytes(mcap)
        place("zstd", "plain.mcap.zst").write_bytes(zstandard.compress(mcap))
        place("sqlite", "bag.db3").write_bytes(next((scratch / "bag").glob("*.db3")).read_bytes())
        for name, pack in (("plain", None), ("lz4", Ros1Writer.CompressionFormat.LZ4), ("bz2", Ros1Writer.CompressionFormat.BZ2)):
            path = scratch / f"{name}.bag"
            writer = Ros1Writer(path)
            if pack:
                writer.set_compression(pack)
            with writer:
                connection = writer.add_connection("/joint_states", kind, typestore=first)
                for stamp, message in states(first, True):
                    writer.write(connection, stamp, first.serialize_ros1(message, kind))
            place("ros1", f"{name}.bag").write_bytes(path.read_bytes())


main()
