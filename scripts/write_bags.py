#!/usr/bin/env python3
"""Writes ROS 1 and 2 bags with several topics, types and rates (rosbags), for the tests of the readers.

usage: scripts/write_bags.py FOLDER      (exit status 77 if a package is missing)

All signals are sines of time, so that the tests can compute them between messages.
"""
import math
import pathlib
import sys

try:
    import numpy
    from rosbags.rosbag1 import Writer as Ros1Writer
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

JOINTS = ["shoulder", "elbow"]
START = 1000
CUSTOM = {
    "robot_msgs/msg/Motor": "uint8 mode\nfloat32 q\nint16 temperature\nfloat64 tau_est\nfloat32[2] spare\n",
    "robot_msgs/msg/LowState": "uint8 LEVEL=3\nstring<=20 version\nbool ready\nMotor[] motor_state\nuint8[] blob\nfloat64 tick 1.5\n",
    "robot_msgs/msg/Joints": "std_msgs/Header header\nstring[] joint_names\nfloat64[] positions\nfloat64[] efforts\n",
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": "std_msgs/Header header\nstring[] joint_names\nInterfaceValue[] interface_values\n",
}


def signal(k, t):
    """Returns the k-th signal at time t."""
    return (k + 1) * math.sin((1 + 0.3 * k) * t + k)


def messages(types, ros1):
    """Returns topics with type, rate and a function that creates the message at a time."""
    t_ = lambda name: types[name]  # noqa: E731
    time, header = t_("builtin_interfaces/msg/Time"), t_("std_msgs/msg/Header")

    def head(t):
        nanoseconds = round(t * 1e9)
        stamp = time(sec=START + nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
        return header(seq=0, stamp=stamp, frame_id="x") if ros1 else header(stamp=stamp, frame_id="frame")

    def vector(kind, first, t, parts="xyz"):
        return t_(f"geometry_msgs/msg/{kind}")(**{part: signal(first + k, t) for k, part in enumerate(parts)})

    def state(t):
        return t_("sensor_msgs/msg/JointState")(
            header=head(t), name=JOINTS, position=numpy.array([signal(0, t), signal(1, t)]), velocity=numpy.array([]),
            effort=numpy.array([signal(2, t), signal(3, t)]))

    def wrench(t):
        inner = t_("geometry_msgs/msg/Wrench")(force=vector("Vector3", 4, t), torque=vector("Vector3", 7, t))
        return t_("geometry_msgs/msg/WrenchStamped")(header=head(t), wrench=inner)

    def imu(t):
        return t_("sensor_msgs/msg/Imu")(
            header=head(t), orientation=vector("Quaternion", 0, t, "xyzw"), orientation_covariance=numpy.zeros(9),
            angular_velocity=vector("Vector3", 10, t), angular_velocity_covariance=numpy.zeros(9),
            linear_acceleration=vector("Vector3", 13, t), linear_acceleration_covariance=numpy.zeros(9))

    def odometry(t):
        pose = t_("geometry_msgs/msg/Pose")(position=vector("Point", 0, t), orientation=vector("Quaternion", 3, t, "xyzw"))
        twist = t_("geometry_msgs/msg/Twist")(linear=vector("Vector3", 7, t), angular=vector("Vector3", 10, t))
        return t_("nav_msgs/msg/Odometry")(
            header=head(t), child_frame_id="base", pose=t_("geometry_msgs/msg/PoseWithCovariance")(pose=pose, covariance=numpy.zeros(36)),
            twist=t_("geometry_msgs/msg/TwistWithCovariance")(twist=twist, covariance=numpy.zeros(36)))

    def low(t):
        motor = lambda k: t_("robot_msgs/msg/Motor")(  # noqa: E731
            mode=k, q=signal(k, t), temperature=-5, tau_est=signal(2 + k, t), spare=numpy.zeros(2, "f4"))
        return t_("robot_msgs/msg/LowState")(
            version="v1", ready=True, motor_state=[motor(0), motor(1)], blob=numpy.zeros(5000, "u1"), tick=t)

    def dynamic(t):
        value = lambda k: t_("control_msgs/msg/InterfaceValue")(  # noqa: E731
            interface_names=["position", "temperature", "effort"], values=numpy.array([signal(k, t), 20.0, signal(2 + k, t)]))
        return t_("control_msgs/msg/DynamicJointState")(header=head(t), joint_names=JOINTS, interface_values=[value(0), value(1)])

    def joints(t):
        # In another order than the joints of the model.
        return t_("robot_msgs/msg/Joints")(
            header=head(t), joint_names=JOINTS[::-1], positions=numpy.array([signal(1, t), signal(0, t)]),
            efforts=numpy.array([signal(3, t), signal(2, t)]))

    return [
        ("/joint_states", "sensor_msgs/msg/JointState", 250, state), ("/ft", "geometry_msgs/msg/WrenchStamped", 100, wrench),
        ("/imu", "sensor_msgs/msg/Imu", 400, imu), ("/odom", "nav_msgs/msg/Odometry", 50, odometry),
        ("/low_state", "robot_msgs/msg/LowState", 125, low), ("/dynamic", "control_msgs/msg/DynamicJointState", 250, dynamic),
        ("/joints", "robot_msgs/msg/Joints", 250, joints),
    ]


def publishers(types, ros1):
    """Returns joint states of an arm and of a gripper on the same topic."""
    (topic, kind, rate, arm), *_ = messages(types, ros1)
    state = types["sensor_msgs/msg/JointState"]

    def gripper(t):
        # Its position is signal 4; it has neither velocities nor efforts.
        position = numpy.array([signal(4, t), -signal(4, t)])
        return state(header=arm(t).header, name=["left", "right"], position=position, velocity=numpy.array([]), effort=numpy.array([]))

    return [(topic, kind, 100, gripper), (topic, kind, rate, arm)]


def write(writer, store, ros1, contents=messages):
    rows, connections = [], {}
    for topic, kind, rate, make in contents(store.types, ros1):
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, kind, typestore=store)
        connection = connections[topic]
        # Both the rates and the first time stamps differ.
        rows += [((i + 0.3 * (rate != 250)) / rate, connection, kind, make) for i in range(8 * rate)]
    for t, connection, kind, make in sorted(rows, key=lambda row: row[0]):
        pack = store.serialize_ros1 if ros1 else store.serialize_cdr
        writer.write(connection, START * 10**9 + round(t * 1e9), pack(make(t), kind))


def main():
    folder = pathlib.Path(sys.argv[1])
    for ros1 in (False, True):
        store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
        for name, text in CUSTOM.items():
            # ROS 1 has neither bounded strings nor default values.
            text = text.replace("string<=20", "string").replace("tick 1.5", "tick") if ros1 else text
            store.register(get_types_from_msg(text, name))
        if ros1:
            for name, contents in (("several.bag", messages), ("publishers.bag", publishers)):
                with Ros1Writer(folder / name) as writer:
                    write(writer, store, True, contents)
            continue
        for kind, plugin in (("db3", StoragePlugin.SQLITE3), ("mcap", StoragePlugin.MCAP)):
            for name, contents in (("several", messages), ("publishers", publishers)):
                with Writer(folder / f"{name}_{kind}", version=9, storage_plugin=plugin) as writer:
                    write(writer, store, False, contents)


main()
