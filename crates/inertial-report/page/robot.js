// The part of the page that shows the robot: joints to move, inertias before and after, motions to play.

function robotSection() {
  const robot = data.robot;
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `The robot ${data.title}. Arrow keys turn it, plus and minus zoom.` });
  const sliders = el("div", { class: "sliders" });
  const buttons = el("div", { class: "row" });
  const note = el("p", { class: "legend" },
    "Drag to turn; click the picture, then scroll to zoom. Each outlined box has uniform density and the mass, centre of mass and inertia of its body.");
  section("robot", "The robot", el("div", { class: "robot" }, el("div", {}, canvas, buttons, note), el("div", {}, sliders)));
  const scene = new Scene(canvas, robot);
  drawings.add(scene);
  // For tests and the curious.
  window.inertial = { scene, gap: () => loopErrors(robot, scene.q).reduce((m, e) => Math.max(m, Math.abs(e)), 0) };
  const held = new Set(robot.loops.length ? robot.coordinates.filter((c) => c.slider).map((c) => c.index) : []);
  const inputs = [], rows = new Map();
  const move = (q) => {
    if (!closeLoops(robot, q, held)) return false;
    scene.setCoordinates(q);
    return true;
  };
  for (const c of robot.coordinates.filter((c) => c.slider)) {
    const angle = c.unit === "rad";
    const text = (x) => (angle ? `${((x * 180) / Math.PI).toFixed(1)}°` : `${x.toFixed(3)} m`);
    const output = el("output", { for: `slider-${c.index}` }, text(robot.q[c.index]));
    const input = el("input", { id: `slider-${c.index}`, type: "range", min: c.lower, max: c.upper, step: (c.upper - c.lower) / 500, value: robot.q[c.index] });
    input.addEventListener("input", () => {
      const q = scene.q.slice();
      q[c.index] = +input.value;
      if (!move(q)) input.value = scene.q[c.index];
      output.textContent = text(scene.q[c.index]);
    });
    inputs.push(() => {
      input.value = scene.q[c.index];
      output.textContent = text(scene.q[c.index]);
    });
    rows.set(c.index, el("div", { class: "slider" }, el("label", { for: `slider-${c.index}` }, c.name), output, input));
    sliders.append(rows.get(c.index));
  }
  // A floating base also turns: roll, pitch and yaw of its quaternion.
  const base = robot.bodies.findIndex((b) => b.joint.type === "floating" && b.parent === null);
  if (base >= 0) {
    const at = robot.bodies[base].drive.q + 3, angles = [0, 0, 0];
    let last = rows.get(at - 1);
    for (const [k, name] of ["roll", "pitch", "yaw"].entries()) {
      const reach = k === 1 ? 89 : 180, id = `slider-base-${name}`;
      const output = el("output", { for: id }, "0.0°");
      const input = el("input", { id, type: "range", min: -reach, max: reach, step: 0.5, value: 0 });
      input.addEventListener("input", () => {
        const q = scene.q.slice();
        angles[k] = (+input.value * Math.PI) / 180;
        quaternion(...angles).forEach((x, i) => (q[at + i] = x));
        if (!move(q)) input.value = 0;
        output.textContent = `${(+input.value).toFixed(1)}°`;
      });
      inputs.push(() => {
        angles[k] = rollPitchYaw(scene.q.slice(at, at + 4))[k];
        input.value = (angles[k] * 180) / Math.PI;
        output.textContent = `${(+input.value).toFixed(1)}°`;
      });
      const row = el("div", { class: "slider" }, el("label", { for: id }, `base ${name}`), output, input);
      last ? last.after(row) : sliders.prepend(row);
      last = row;
    }
  }
  const toggle = (name, text, there) => {
    if (!there) return;
    const button = el("button", { type: "button", "aria-pressed": "true" }, text);
    button.addEventListener("click", () => {
      scene.shown[name] = !scene.shown[name];
      button.setAttribute("aria-pressed", String(scene.shown[name]));
      scene.draw();
    });
    buttons.append(button);
  };
  toggle("links", "Joints and links", true);
  toggle("shapes", "Shapes", robot.ground?.length || robot.bodies.some((b) => b.shapes?.length));
  toggle("before", "Inertia of the model", robot.bodies.some((b) => b.before));
  toggle("after", "Inertia identified", robot.bodies.some((b) => b.after));
  const choice = el("select", { id: "body-choice" }, el("option", { value: "" }, "no body"), ...robot.bodies.map((b, i) => el("option", { value: i }, b.name)));
  choice.addEventListener("change", () => {
    scene.selected = choice.value === "" ? null : +choice.value;
    scene.draw();
  });
  buttons.append(el("label", {}, "highlight", choice));
  const reset = el("button", { type: "button" }, "Start position");
  reset.addEventListener("click", () => {
    scene.setCoordinates(robot.q.slice());
    inputs.forEach((f) => f());
  });
  buttons.append(reset);
  if (data.motions) player(scene, buttons, inputs);
  const row = (b, box) => (box ? box.half.map((h) => digits(2 * h, 3)).join(" × ") : "–");
  const both = robot.bodies.some((b) => b.after);
  const shown = robot.bodies.filter((b) => b.before || b.after);
  if (shown.length) {
    document.getElementById("robot").append(el("details", {}, el("summary", {}, "Sides of the boxes (m)"),
      table(["body", "model", ...(both ? ["identified"] : [])], shown.map((b) => [b.name, row(b, b.before), ...(both ? [row(b, b.after)] : [])]), "sides of the inertia boxes")));
  }
}

/** Quaternion (x, y, z, w) of a rotation by roll, pitch and yaw about the fixed axes x, y and z. */
function quaternion(roll, pitch, yaw) {
  const [cr, cp, cy] = [roll, pitch, yaw].map((a) => Math.cos(a / 2)), [sr, sp, sy] = [roll, pitch, yaw].map((a) => Math.sin(a / 2));
  return [sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy];
}

/** Roll, pitch and yaw of a quaternion (x, y, z, w). */
function rollPitchYaw([x, y, z, w]) {
  return [Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))), Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))];
}

/** Plays a log, or the designed motion. */
function player(scene, buttons, inputs) {
  const button = el("button", { type: "button", "aria-pressed": "false" }, data.design ? "Play the motion" : "Play the log");
  const slider = el("input", { type: "range", class: "time", min: 0, value: 0, "aria-label": "time" });
  const choice = el("select", { id: "motion-choice", "aria-label": "log to play" }, ...logNames(data.motions.map((m) => m.name)).map((name, i) => el("option", { value: i }, name)));
  let motion, q, started = null;
  const show = (i) => {
    scene.setCoordinates(scene.q.map((x, k) => (q[k] ? q[k][i] : x)));
    inputs.forEach((f) => f());
  };
  const stop = () => {
    started = null;
    button.setAttribute("aria-pressed", "false");
  };
  const choose = (i) => {
    stop();
    motion = data.motions[i];
    q = motion.q.map(decode);
    slider.max = motion.length - 1;
    slider.value = 0;
  };
  const tick = (now) => {
    if (started === null) return;
    const i = Math.floor((now - started) / 1000 / motion.step);
    if (i >= motion.length) return stop();
    slider.value = i;
    show(i);
    requestAnimationFrame(tick);
  };
  button.addEventListener("click", () => {
    if (started !== null) return stop();
    started = performance.now() - (+slider.value >= motion.length - 1 ? 0 : +slider.value * motion.step * 1000);
    button.setAttribute("aria-pressed", "true");
    requestAnimationFrame(tick);
  });
  slider.addEventListener("input", () => {
    stop();
    show(+slider.value);
  });
  choice.addEventListener("change", () => {
    choose(+choice.value);
    show(0);
  });
  choose(0);
  buttons.append(...(data.motions.length > 1 ? [choice] : []), button, slider);
}
