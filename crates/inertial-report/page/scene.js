// The robot in three dimensions, drawn on a plain canvas: joints, links, shapes, inertia cuboids.

class Scene {
  constructor(canvas, robot) {
    this.canvas = canvas;
    this.robot = robot;
    this.q = robot.q.slice();
    this.view = { yaw: -0.9, pitch: 0.45, zoom: 1 };
    this.shown = { links: true, before: true, after: true, shapes: true };
    this.selected = null;
    this.fit();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /** The view's centre and size, from where the bodies are. A cuboid larger than the robot (a rotor's inertia seen through its gear, say)
   *  would leave nothing else to see: it may reach out of the view. */
  fit() {
    const poses = bodyPoses(this.robot, this.q), points = [[0, 0, 0], ...poses.map((pose) => pose.p)];
    const bound = () => {
      const low = [0, 1, 2].map((k) => Math.min(...points.map((p) => p[k])));
      const high = [0, 1, 2].map((k) => Math.max(...points.map((p) => p[k])));
      this.centre = scale(add(low, high), 0.5);
      this.size = Math.max(norm(subtract(high, low)), 0.05);
    };
    for (const state of ["before", "after"]) {
      bound();
      const largest = state === "before" ? Infinity : 0.5 * this.size;
      poses.forEach((pose, i) => {
        const box = this.robot.bodies[i][state];
        if (box && norm(box.half) <= largest) points.push(...boxCorners(box).map((c) => place(pose, c)));
      });
    }
    bound();
  }

  setCoordinates(q) {
    this.q = q;
    this.draw();
  }

  poses() {
    return bodyPoses(this.robot, this.q);
  }

  listen() {
    const c = this.canvas, v = this.view;
    let last = null;
    c.addEventListener("pointerdown", (e) => {
      last = [e.clientX, e.clientY];
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointermove", (e) => {
      if (!last) return;
      v.yaw -= (e.clientX - last[0]) * 0.008;
      v.pitch = Math.min(1.5, Math.max(-1.5, v.pitch + (e.clientY - last[1]) * 0.008));
      last = [e.clientX, e.clientY];
      this.draw();
    });
    const end = () => (last = null);
    c.addEventListener("pointerup", end);
    c.addEventListener("pointercancel", end);
    c.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== c) return;
      e.preventDefault();
      v.zoom = Math.min(20, Math.max(0.1, v.zoom * Math.exp(-e.deltaY * 0.001)));
      this.draw();
    }, { passive: false });
    c.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
      if (step) {
        v.yaw += step[0];
        v.pitch = Math.min(1.5, Math.max(-1.5, v.pitch + step[1]));
      } else if (e.key === "+") v.zoom *= 1.15;
      else if (e.key === "-") v.zoom /= 1.15;
      else return;
      e.preventDefault();
      this.draw();
    });
  }

  draw() {
    const c = this.canvas, ratio = window.devicePixelRatio || 1;
    const width = c.clientWidth, height = c.clientHeight;
    if (width === 0 || height === 0) return;
    if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
    }
    const g = c.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const css = getComputedStyle(c), colour = (name) => css.getPropertyValue(name).trim();
    const { yaw, pitch, zoom } = this.view;
    const away = 2.2 * this.size;
    const f = (1.05 * zoom * Math.min(width, height * 1.2) * away) / this.size / 1.5;
    const right = [-Math.sin(yaw), Math.cos(yaw), 0];
    const back = [Math.cos(yaw) * Math.cos(pitch), Math.sin(yaw) * Math.cos(pitch), Math.sin(pitch)];
    const up = cross(back, right);
    const project = (p) => {
      const d = subtract(p, this.centre), depth = away - dot(d, back);
      return [width / 2 + (f * dot(d, right)) / depth, height / 2 - (f * dot(d, up)) / depth, depth];
    };
    const faces = [];
    const face = (points, fill, stroke, alpha = 1, line = 1) => {
      const corners = points.map(project);
      if (corners.some((p) => p[2] < 0.02 * this.size)) return;
      faces.push({ corners, fill, stroke, alpha, line, depth: corners.reduce((s, p) => s + p[2], 0) / corners.length });
    };
    const lines = [];
    const outline = (points, stroke, line) => {
      const ends = points.map(project);
      if (ends.every((p) => p[2] >= 0.02 * this.size)) lines.push({ ends, stroke, line });
    };
    this.ground(face, colour("--grid"));
    const poses = this.poses();
    const radius = 0.012 * this.size;
    const shade = (normal) => 0.62 + 0.38 * Math.max(0, dot(normal, [0.35, 0.25, 0.9]));
    if (this.shown.shapes) {
      for (const shape of this.robot.ground || []) drawShape(face, identity(), shape, (n) => `hsl(215 8% ${Math.round(60 * shade(n))}%)`, 1);
    }
    this.robot.bodies.forEach((body, i) => {
      const pose = poses[i], hue = bodyHue(i, this.robot.bodies.length);
      const strong = this.selected === i;
      const own = (light) => `hsl(${hue} 55% ${light}%)`;
      if (this.shown.links && body.kind !== "symmetric-rotor") {
        const from = body.parent === null ? [0, 0, 0] : poses[body.parent].p;
        tube(face, from, pose.p, 0.45 * radius, (n) => `hsl(${hue} 22% ${Math.round(62 * shade(n))}%)`);
        this.joint(face, body, pose, radius, (n) => own(Math.round(58 * shade(n))));
      }
      if (this.shown.shapes) {
        for (const shape of body.shapes || []) drawShape(face, pose, shape, (n) => own(Math.round(66 * shade(n))), 1);
      }
      const boxes = [["before", colour("--before")], ["after", colour("--after")]];
      for (const [name, paint] of boxes) {
        const box = body[name];
        if (!box || !this.shown[name]) continue;
        const corners = boxCorners(box).map((p) => place(pose, p));
        // Outlines in front of everything, so that they hide nothing; the highlighted body's box is filled too.
        for (const [a, b] of BOX_EDGES) outline([corners[a], corners[b]], paint, strong ? 2.5 : 1.2);
        if (strong) for (const quad of BOX_FACES) face(quad.map((k) => corners[k]), paint, null, 0.3);
        const centre = place(pose, box.centre);
        ball(face, centre, 0.6 * radius, () => paint);
        if (strong) {
          for (let k = 0; k < 3; k++) {
            const axis = rotate(pose.R, [box.axes[k], box.axes[3 + k], box.axes[6 + k]]);
            const tip = add(centre, scale(axis, 0.1 * this.size));
            tube(face, centre, tip, 0.25 * radius, () => paint);
          }
        }
      }
    });
    faces.sort((a, b) => b.depth - a.depth);
    g.lineJoin = "round";
    for (const f of faces) {
      g.beginPath();
      f.corners.forEach((p, k) => (k ? g.lineTo(p[0], p[1]) : g.moveTo(p[0], p[1])));
      g.closePath();
      if (f.fill) {
        g.globalAlpha = f.alpha;
        g.fillStyle = f.fill;
        g.fill();
      }
      if (f.stroke) {
        g.globalAlpha = Math.min(1, f.alpha + 0.4);
        g.strokeStyle = f.stroke;
        g.lineWidth = f.line;
        g.stroke();
      }
    }
    g.globalAlpha = 0.85;
    for (const { ends, stroke, line } of lines) {
      g.beginPath();
      g.moveTo(ends[0][0], ends[0][1]);
      g.lineTo(ends[1][0], ends[1][1]);
      g.strokeStyle = stroke;
      g.lineWidth = line;
      g.stroke();
    }
    g.globalAlpha = 1;
  }

  ground(face, paint) {
    const step = 10 ** Math.round(Math.log10(this.size / 6)), n = 6;
    for (let k = -n; k <= n; k++) {
      face([[k * step, -n * step, 0], [k * step, n * step, 0]], null, paint, 0.3);
      face([[-n * step, k * step, 0], [n * step, k * step, 0]], null, paint, 0.3);
    }
  }

  joint(face, body, pose, radius, paint) {
    const axis = body.joint.axis ? rotate(pose.R, body.joint.axis) : null;
    if (!axis) return ball(face, pose.p, 1.2 * radius, paint);
    const half = scale(axis, body.joint.type === "prismatic" ? 2.4 * radius : 1.6 * radius);
    tube(face, subtract(pose.p, half), add(pose.p, half), body.joint.type === "prismatic" ? 0.7 * radius : 1.25 * radius, paint);
  }
}

const BOX_FACES = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]];

/** Pairs of corners that differ in one coordinate. */
const BOX_EDGES = [1, 2, 4].flatMap((bit) => [...Array(8).keys()].filter((k) => !(k & bit)).map((k) => [k, k | bit]));

/** Colours of the bodies go once around the circle. */
const bodyHue = (i, n) => Math.round(205 + (360 * i) / Math.max(n, 6)) % 360;

/** The eight corners of a cuboid {centre, half, axes (columns)} in its body's frame. */
function boxCorners(box) {
  const out = [];
  for (let k = 0; k < 8; k++) {
    const s = [k & 1 ? 1 : -1, k & 2 ? 1 : -1, k & 4 ? 1 : -1].map((x, j) => x * box.half[j]);
    out.push(add(box.centre, rotate(box.axes, s)));
  }
  return out;
}

/** A tube of eight sides with its ends. */
function tube(face, from, to, radius, paint) {
  const along = subtract(to, from), length = norm(along);
  if (length < 1e-9) return;
  const axis = scale(along, 1 / length);
  const side = Math.abs(axis[2]) < 0.9 ? cross(axis, [0, 0, 1]) : cross(axis, [1, 0, 0]);
  const u = scale(side, 1 / norm(side)), v = cross(axis, u), n = 8;
  const rim = [...Array(n)].map((_, k) => {
    const t = (2 * Math.PI * k) / n;
    return add(scale(u, Math.cos(t)), scale(v, Math.sin(t)));
  });
  for (let k = 0; k < n; k++) {
    const a = rim[k], b = rim[(k + 1) % n], normal = scale(add(a, b), 0.5);
    const [ra, rb] = [scale(a, radius), scale(b, radius)];
    face([add(from, ra), add(from, rb), add(to, rb), add(to, ra)], paint(normal), null);
  }
  face(rim.map((r) => add(to, scale(r, radius))), paint(axis), null);
  face(rim.map((r) => add(from, scale(r, radius))), paint(scale(axis, -1)), null);
}

/** A ball as an octahedron cut finer once. */
function ball(face, centre, radius, paint, alpha = 1) {
  const d = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], signs = [-1, 1];
  for (const x of signs) for (const y of signs) for (const z of signs) {
    const [a, b, c] = [scale(d[0], x), scale(d[1], y), scale(d[2], z)];
    const unit = (v) => scale(v, 1 / norm(v));
    const [ab, bc, ca] = [unit(add(a, b)), unit(add(b, c)), unit(add(c, a))];
    for (const t of [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]) {
      const normal = unit(add(add(t[0], t[1]), t[2]));
      face(t.map((p) => add(centre, scale(p, radius))), paint(normal), null, alpha);
    }
  }
}

/** A collision or visual shape of a body. */
function drawShape(face, pose, shape, paint, alpha) {
  const frame = compose(pose, shape.pose);
  const see = (points, fill) => face(points, fill, null, alpha);
  if (shape.type === "box") {
    const corners = boxCorners({ centre: [0, 0, 0], half: shape.half, axes: identity().R }).map((p) => place(frame, p));
    for (const quad of BOX_FACES) see(quad.map((k) => corners[k]), paint([0, 0, 1]));
  } else if (shape.type === "cylinder") {
    const half = [0, 0, shape.length / 2];
    tube(see, place(frame, scale(half, -1)), place(frame, half), shape.radius, paint);
  } else if (shape.type === "sphere") {
    ball(see, frame.p, shape.radius, paint);
  } else if (shape.type === "mesh") {
    const points = shape.points.map((p) => place(frame, p));
    for (const t of shape.triangles) {
      const [a, b, c] = t.map((k) => points[k]), n = cross(subtract(b, a), subtract(c, a));
      see([a, b, c], paint(scale(n, 1 / (norm(n) || 1))));
    }
  }
}
