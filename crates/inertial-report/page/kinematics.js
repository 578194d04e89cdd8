// Where the bodies are at given coordinates; loops closed by damped least squares.
// A pose is {R: nine numbers by rows, p: three numbers}.

const identity = () => ({ R: [1, 0, 0, 0, 1, 0, 0, 0, 1], p: [0, 0, 0] });
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);
const rotate = (R, a) => [
  R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
  R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
  R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
];
const unrotate = (R, a) => [
  R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
  R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
  R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
];
const product = (A, B) => {
  const out = new Array(9);
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 3; j++) {
      out[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
    }
  }
  return out;
};
const place = (pose, point) => add(rotate(pose.R, point), pose.p);
const compose = (a, b) => ({ R: product(a.R, b.R), p: place(a, b.p) });

function turn(axis, angle) {
  const [x, y, z] = axis, c = Math.cos(angle), s = Math.sin(angle), d = 1 - c;
  return [
    c + x * x * d, x * y * d - z * s, x * z * d + y * s,
    y * x * d + z * s, c + y * y * d, y * z * d - x * s,
    z * x * d - y * s, z * y * d + x * s, c + z * z * d,
  ];
}

function fromQuaternion(x, y, z, w) {
  const n = Math.hypot(x, y, z, w) || 1;
  [x, y, z, w] = [x / n, y / n, z / n, w / n];
  return [
    1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
    2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
    2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y),
  ];
}

/** The motion of a joint at its own coordinates. */
function jointPose(joint, q) {
  switch (joint.type) {
    case "revolute": return { R: turn(joint.axis, q[0]), p: [0, 0, 0] };
    case "prismatic": return { R: identity().R, p: scale(joint.axis, q[0]) };
    case "helical": return { R: turn(joint.axis, q[0]), p: scale(joint.axis, joint.pitch * q[0]) };
    case "cylindrical": return { R: turn(joint.axis, q[0]), p: scale(joint.axis, q[1]) };
    case "planar": return {
      R: turn(joint.axis, q[2]),
      p: add(scale(joint.plane[0], q[0]), scale(joint.plane[1], q[1])),
    };
    case "spherical": return { R: fromQuaternion(...q), p: [0, 0, 0] };
    case "floating": return { R: fromQuaternion(q[3], q[4], q[5], q[6]), p: q.slice(0, 3) };
    default: return identity();
  }
}

/** Poses of all bodies in the world. */
function bodyPoses(robot, q) {
  const poses = [];
  for (const body of robot.bodies) {
    const own = body.joint.width === 1
      ? [body.drive.ratio * q[body.drive.q] + body.drive.offset]
      : q.slice(body.drive.q, body.drive.q + body.joint.width);
    const local = compose(body.placement, jointPose(body.joint, own));
    poses.push(body.parent === null ? local : compose(poses[body.parent], local));
  }
  return poses;
}

/** How far the loops are from closed, each as the part of the relative pose that its joint does not allow. */
function loopErrors(robot, q) {
  const poses = bodyPoses(robot, q), out = [];
  const at = (end) => (end.body === null ? end.pose : compose(poses[end.body], end.pose));
  for (const loop of robot.loops) {
    const a = at(loop.predecessor), b = at(loop.successor);
    const gap = unrotate(a.R, subtract(b.p, a.p));
    const R = product([a.R[0], a.R[3], a.R[6], a.R[1], a.R[4], a.R[7], a.R[2], a.R[5], a.R[8]], b.R);
    const axis = loop.joint.axis;
    const aligned = () => cross(axis, rotate(R, axis));
    const across = () => subtract(gap, scale(axis, dot(gap, axis)));
    const level = () => [0, 1, 2].flatMap((k) => {
      const e = [0, 0, 0];
      e[k] = 1;
      return cross(e, rotate(R, e));
    });
    switch (loop.joint.type) {
      case "revolute": out.push(...gap, ...aligned()); break;
      case "prismatic": out.push(...across(), ...level()); break;
      case "cylindrical": out.push(...across(), ...aligned()); break;
      case "helical": {
        const side = Math.abs(axis[0]) < 0.7 ? cross(axis, [1, 0, 0]) : cross(axis, [0, 1, 0]);
        const turned = rotate(R, side);
        const angle = Math.atan2(dot(axis, cross(side, turned)), dot(side, turned));
        out.push(...across(), ...aligned(), dot(gap, axis) - loop.joint.pitch * angle);
        break;
      }
      case "universal": out.push(...gap, dot(loop.joint.axes[0], rotate(R, loop.joint.axes[1]))); break;
      case "planar": out.push(dot(gap, axis), ...aligned()); break;
      case "spherical": out.push(...gap); break;
      case "fixed": out.push(...gap, ...level()); break;
    }
  }
  return out;
}

/** Changes the coordinates that are not held until the loops close; false where they cannot. */
function closeLoops(robot, q, held) {
  if (robot.loops.length === 0) return true;
  const free = q.map((_, i) => i).filter((i) => !held.has(i));
  let error = loopErrors(robot, q), cost = error.reduce((s, e) => s + e * e, 0), damping = 1e-6;
  for (let round = 0; round < 60 && cost > 1e-18; round++) {
    const h = 1e-7;
    const columns = free.map((i) => {
      const moved = q.slice();
      moved[i] += h;
      return loopErrors(robot, moved).map((e, k) => (e - error[k]) / h);
    });
    const n = free.length;
    const gram = columns.map((a) => columns.map((b) => a.reduce((s, x, k) => s + x * b[k], 0)));
    const right = columns.map((a) => a.reduce((s, x, k) => s - x * error[k], 0));
    for (let i = 0; i < n; i++) gram[i][i] += damping;
    const step = solve(gram, right);
    const tried = q.slice();
    free.forEach((i, k) => (tried[i] += step[k]));
    const next = loopErrors(robot, tried), value = next.reduce((s, e) => s + e * e, 0);
    if (value < cost) {
      free.forEach((i) => (q[i] = tried[i]));
      error = next;
      cost = value;
      damping = Math.max(damping * 0.1, 1e-12);
    } else {
      damping *= 30;
      if (damping > 1e6) break;
    }
  }
  return cost < 1e-10;
}

/** Gaussian elimination with pivoting. */
function solve(matrix, right) {
  const n = right.length, a = matrix.map((row, i) => [...row, right[i]]);
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(a[i][k]) > Math.abs(a[best][k])) best = i;
    [a[k], a[best]] = [a[best], a[k]];
    if (a[k][k] === 0) continue;
    for (let i = k + 1; i < n; i++) {
      const f = a[i][k] / a[k][k];
      for (let j = k; j <= n; j++) a[i][j] -= f * a[k][j];
    }
  }
  const x = new Array(n).fill(0);
  for (let k = n - 1; k >= 0; k--) {
    let s = a[k][n];
    for (let j = k + 1; j < n; j++) s -= a[k][j] * x[j];
    x[k] = a[k][k] === 0 ? 0 : s / a[k][k];
  }
  return x;
}
