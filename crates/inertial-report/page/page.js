// Builds the page from its data: each part appears where the data have it.

const data = JSON.parse(document.getElementById("data").textContent);
/** What is drawn on canvases, to be drawn anew in other colours. */
const drawings = new Set();
const redraw = () => drawings.forEach((d) => (d.canvas.isConnected ? d.draw() : drawings.delete(d)));

/** An element with attributes and children; texts become text nodes, never markup. */
function el(name, attributes = {}, ...children) {
  const out = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") out.className = value;
    else if (key.startsWith("on")) out.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) out.setAttribute(key, value === true ? "" : value);
  }
  out.append(...children.filter((c) => c !== null && c !== undefined));
  return out;
}

const main = document.getElementById("content");
const section = (id, title, ...children) => {
  const out = el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
  main.append(out);
  return out;
};
const percent = (x) => `${(100 * x).toFixed(Math.abs(x) < 0.1 ? 2 : 1)} %`;
const digits = (x, n = 5) => {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? x.toExponential(n - 1) : String(+x.toPrecision(n));
};
/** Numbers stored as 32-bit floats in base64. */
function decode(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}
/** A table; columns numbered in `text` hold words, which wrap. */
const table = (head, rows, label, text = []) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
  el("table", {}, el("thead", {}, el("tr", {}, ...head.map((h, k) => el("th", { scope: "col", ...(text.includes(k) ? { class: "text" } : {}) }, h)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, k) =>
      el(k ? "td" : "th", k ? (text.includes(k) ? { class: "text" } : {}) : { scope: "row" }, cell)))))));
/** A value with its standard error, where it has one. */
const withError = (x, error, n = 5) => (Number.isFinite(error) ? `${digits(x, n)} ± ${digits(error, 2)}` : digits(x, n));
/** Width of a drawing in its section, so that its letters keep their size. */
const drawingWidth = () => Math.max(300, Math.min(1540, main.clientWidth - 80));
const SVG = "http://www.w3.org/2000/svg";
const shape = (name, attributes, ...children) => {
  const out = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) out.setAttribute(key, value);
  out.append(...children);
  return out;
};

theme();
document.getElementById("kind").textContent = data.kind;
main.append(el("p", { class: "lead", id: "lead" }, data.lead));
if (data.tiles.length) {
  main.append(el("div", { class: "tiles" }, ...data.tiles.map((t) => el("div", { class: `tile ${t.grade || ""}` }, el("b", {}, t.value), el("span", {}, t.label), t.hint ? el("small", {}, t.hint) : null))));
}
for (const text of data.severe) main.append(el("p", { class: "warning severe", role: "note" }, text));
for (const text of data.warnings) main.append(el("p", { class: "warning", role: "note" }, text));
if (data.robot) robotSection();
if (data.curves.length) curvesSection();
if (data.check) checkSection();
if (data.identification) { parametersSection(); bodiesSection(); intervalsSection(); jointsSection(); termChoicesSection(); }
if (data.validation) residualsSection();
if (data.design) designSection();
if (data.singular_values?.values.length) singularSection();
if (data.analysis) marksSection();
if (data.graph || data.analysis?.null_vectors?.length) graphSection();
provenanceSection();

function theme() {
  const root = document.documentElement, button = document.getElementById("theme");
  const set = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
    redraw();
  };
  button.addEventListener("click", () => set(root.dataset.theme !== "dark"));
  set(window.matchMedia("(prefers-color-scheme: dark)").matches);
  // Paper is white.
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    set(false);
  });
  window.addEventListener("afterprint", () => set(before === "dark"));
}

/** Names of logs without their folders, where that leaves them different. */
function logNames(names) {
  const short = names.map((name) => name.replace(/^.*[/\\]/, ""));
  return new Set(short).size === new Set(names).size ? short : names;
}

/** Measured and predicted curves of all joints, each a button that chooses its joint. */
function overview(log, series, choose) {
  const w = 220, h = 70;
  const path = (values, x, y) => {
    // Least and greatest of each pixel column, so that no peak is lost.
    let out = "";
    for (let k = 0; k < w; k++) {
      const part = values.subarray(Math.floor((k * values.length) / w), Math.max(Math.floor(((k + 1) * values.length) / w), Math.floor((k * values.length) / w) + 1));
      let low = Infinity, high = -Infinity;
      for (const v of part) { if (v < low) low = v; if (v > high) high = v; }
      if (low <= high) out += `${out ? "L" : "M"}${x(k).toFixed(1)} ${y(high).toFixed(1)}L${x(k).toFixed(1)} ${y(low).toFixed(1)}`;
    }
    return out;
  };
  return el("div", { class: "overview", role: "group", "aria-label": "all joints" }, ...log.series.map((s, i) => {
    const { measured, predicted } = series(s);
    let low = Infinity, high = -Infinity;
    for (const values of [measured, predicted]) for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
    const y = (v) => 4 + ((high - v) / (high - low || 1)) * (h - 8), x = (k) => k;
    const picture = shape("svg", { viewBox: `0 0 ${w} ${h}`, "aria-hidden": "true" },
      shape("path", { d: path(measured, x, y), stroke: "var(--measured)", "stroke-width": 2.6, opacity: 0.6, fill: "none" }),
      shape("path", { d: path(predicted, x, y), stroke: "var(--predicted)", "stroke-width": 1, fill: "none" }));
    const residual = s.relative_rms > 0 ? percent(s.relative_rms) : "";
    return el("button", { type: "button", class: "small", onclick: () => choose(i) }, el("span", {}, s.joint, " ", el("span", { class: "quiet" }, residual)), picture);
  }));
}

/** Measured against predicted: all joints, then one at a time. */
function curvesSection() {
  const holder = el("div", { id: "joint-curves", role: "tabpanel" }), tabs = el("div"), all = el("div");
  const logs = el("select", { id: "log-choice" }, ...logNames(data.curves.map((c) => `${c.log} (${c.part})`)).map((name, i) => el("option", { value: i }, name)));
  const key = (colour, text) => el("span", {}, el("span", { class: "key", style: `background:var(${colour})` }), text);
  section("curves", "Measured and predicted",
    el("div", { class: "row" }, el("label", { for: "log-choice" }, "log", logs), key("--measured", "measured"), key("--predicted", "predicted"), key("--residual", "residual")),
    all, tabs, holder,
    el("p", { class: "legend" }, "Drag to pan; click a plot, then scroll to zoom; double click shows all. Every peak is drawn whatever the zoom."));
  let joint = 0;
  const decoded = new Map();
  const series = (s) => {
    if (!decoded.has(s)) decoded.set(s, { measured: decode(s.measured), predicted: decode(s.predicted), residual: decode(s.residual) });
    return decoded.get(s);
  };
  const draw = () => {
    const log = data.curves[+logs.value];
    const s = log.series[joint], { measured, predicted, residual } = series(s);
    const link = { plots: [], view: { from: 0, to: measured.length } };
    holder.replaceChildren();
    const common = { start: log.start, step: log.step, unit: "s", xLabel: "time (s)", link };
    new Plot(holder, { ...common, series: [{ name: "measured", values: measured, colour: "--measured", line: 3.4 }, { name: "predicted", values: predicted, colour: "--predicted" }], yLabel: s.unit, label: `Measured and predicted ${log.quantity} of ${s.joint} over time` });
    new Plot(holder, { ...common, series: [{ name: "residual", values: residual, colour: "--residual" }], yLabel: s.unit, label: `Residual of ${s.joint} over time`, height: 130 });
    const reduced = log.bucket > 1 ? ` The points are the least and the greatest of every ${log.bucket} samples.` : "";
    const drawn = s.counted === log.samples ? `All ${log.samples} samples are drawn.`
      : `Of ${log.samples} samples ${s.counted} are drawn; the others are in a filter's transient, saturated or too slow for the sign of friction.`;
    const several = data.curves.filter((c) => c.part === log.part).length > 1;
    holder.append(el("p", { class: "legend", id: "residual-of-joint" },
      `Residual of ${s.joint}: ${digits(s.rms, 4)} ${s.unit}${s.relative_rms > 0 ? `, ${percent(s.relative_rms)} of the measured ${log.quantity}` : ""} (root mean square of the ${log.part}, as in the table below`,
      several ? `; of this log alone ${digits(s.own_rms, 3)} ${s.unit}` : "", `). ${drawn}${reduced}`));
    const pair = el("div", { class: "columns" }), left = el("div"), right = el("div");
    pair.append(left, right);
    holder.append(pair);
    left.append(el("h3", {}, "Spectrum of the residual"));
    const plot = new Plot(left, { series: [{ name: "density", values: decode(s.spectrum.density), colour: "--residual" }], start: 0, step: s.spectrum.resolution, unit: "Hz", xLabel: "frequency (Hz)", yLabel: `${s.unit}/√Hz`, label: `Spectrum of the residual of ${s.joint}`, height: 180, zero: true });
    drawings.add(plot);
    right.append(el("h3", {}, "Histogram of the residual"), histogram(s));
    if (s.friction) holder.append(el("h3", {}, "Friction over speed"), friction(s));
    window.inertial = { ...window.inertial, link };
    link.plots.forEach((plot) => drawings.add(plot));
  };
  const choose = () => {
    const log = data.curves[+logs.value];
    tabs.replaceChildren(tabList(log.series.map((s) => s.joint), holder, (i) => { joint = i; draw(); }));
    all.replaceChildren(...(log.series.length > 1 ? [overview(log, series, (i) => tabs.querySelectorAll("button")[i].click())] : []));
  };
  logs.addEventListener("change", choose);
  choose();
}

/** Buttons of which one is chosen, and what it shows; the arrow keys go from one to the next. */
function tabList(names, panel, show) {
  const buttons = names.map((name, i) => el("button", { type: "button", role: "tab", id: `${panel.id}-tab-${i}`, "aria-controls": panel.id }, name));
  const choose = (i) => {
    buttons.forEach((b, k) => {
      b.setAttribute("aria-selected", String(k === i));
      b.tabIndex = k === i ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", buttons[i].id);
    show(i);
  };
  buttons.forEach((b, i) => {
    b.addEventListener("click", () => choose(i));
    b.addEventListener("keydown", (e) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1 }[e.key];
      if (!buttons[to]) return;
      choose(to);
      buttons[to].focus();
    });
  });
  choose(0);
  return el("div", { class: "row", role: "tablist", "aria-label": "joints" }, ...buttons);
}

/** The residuals in bins, and the normal distribution of the same spread. */
function histogram({ histogram: { reach, bins, beyond }, spread, unit, counted, joint }) {
  const n = bins.length, w = 420, h = 180, floor = h - 26;
  const normal = (x) => (counted * (2 * reach / n) * Math.exp(-0.5 * (x / spread) ** 2)) / (spread * Math.sqrt(2 * Math.PI));
  const most = Math.max(...bins, spread > 0 ? normal(0) : 0, 1);
  const out = shape("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `Histogram of the residual of ${joint}, within plus and minus ${digits(reach, 3)} ${unit}` });
  const tall = (count) => (count / most) * (floor - 8);
  bins.forEach((b, k) => out.append(shape("rect", { x: (k * w) / n + 0.5, y: floor - tall(b), width: w / n - 1, height: tall(b), fill: "var(--residual)", opacity: 0.75 })));
  if (spread > 0) {
    const points = [...Array(101).keys()].map((k) => `${((k * w) / 100).toFixed(1)} ${(floor - tall(normal((k / 50 - 1) * reach))).toFixed(1)}`);
    out.append(shape("path", { d: `M${points.join("L")}`, stroke: "var(--text)", "stroke-width": 1.5, fill: "none" }));
  }
  out.append(shape("line", { x1: 0, x2: w, y1: floor, y2: floor, stroke: "var(--grid)" }), shape("text", { x: 4, y: 12, class: "quiet" }, "samples"));
  for (const [x, anchor] of [[-reach, "start"], [0, "middle"], [reach, "end"]]) {
    out.append(shape("text", { x: reach ? ((x + reach) / (2 * reach)) * w : w / 2, y: h - 8, "text-anchor": anchor, class: "quiet" }, x === 0 ? `residual (${unit})` : digits(x, 3)));
  }
  return el("div", { class: "bars half" }, out, el("p", { class: "legend" }, `Line: a normal distribution of the same spread.${beyond ? ` Beyond: ${beyond} ${beyond === 1 ? "sample" : "samples"}.` : ""}`));
}

/** What friction took, as dots, and the model's curve. */
function friction(s) {
  const v = decode(s.friction.speed), f = decode(s.friction.force), model = decode(s.friction.model);
  const w = drawingWidth(), h = 220, left = 56, bottom = 36;
  const reach = v.reduce((m, x) => Math.max(m, Math.abs(x)), 1e-9);
  const top = f.reduce((m, x) => Math.max(m, Math.abs(x)), 1e-9);
  const x = (a) => left + ((a + reach) / (2 * reach)) * (w - left - 10), y = (b) => 8 + ((top - b) / (2 * top)) * (h - bottom - 8);
  const out = shape("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `Friction of ${s.joint} over its speed` });
  for (const t of ticks(-top, top, 4)) {
    out.append(shape("line", { x1: left, x2: w - 10, y1: y(t), y2: y(t), stroke: "var(--grid)" }), shape("text", { x: left - 6, y: y(t) + 4, "text-anchor": "end", class: "quiet" }, short(t)));
  }
  for (const t of ticks(-reach, reach, w / 90)) out.append(shape("text", { x: x(t), y: h - bottom + 16, "text-anchor": "middle", class: "quiet" }, short(t)));
  out.append(shape("text", { x: (w + left) / 2, y: h - 4, "text-anchor": "middle", class: "quiet" }, `speed (${s.speed_unit})`), shape("text", { x: left + 4, y: 14, class: "quiet" }, `friction (${s.unit})`));
  let dots = "";
  for (let i = 0; i < v.length; i++) dots += `M${x(v[i]).toFixed(1)} ${y(f[i]).toFixed(1)}h.01`;
  out.append(shape("path", { d: dots, stroke: "var(--measured)", "stroke-width": 2.5, "stroke-linecap": "round", opacity: 0.4, fill: "none" }));
  let marks = "";
  for (let i = 0; i < v.length; i++) marks += `M${x(v[i]).toFixed(1)} ${y(model[i]).toFixed(1)}h.01`;
  out.append(shape("path", { d: marks, stroke: "var(--predicted)", "stroke-width": 3, "stroke-linecap": "round", fill: "none" }));
  return el("div", { class: "bars" }, out, el("p", { class: "legend" }, "Grey: measured friction (measured force minus all other terms). Orange: friction of the model at the same samples."));
}

/** Base parameters with error bars against the model's values. */
function parametersSection() {
  const all = data.identification.base_parameters.map((p, i) => ({ ...p, ...data.parameters[i] }));
  const relative = (p) => (p.std_error && p.value ? percent(p.std_error / Math.abs(p.value)) : "–");
  const rows = all.map((p) => [p.name, errorBar(p), digits(p.value), digits(p.std_error, 2), relative(p), digits(p.model), p.unit]);
  section("parameters", "Base parameters",
    el("p", {}, "Base parameters: the identifiable combinations of inertial parameters. Each bar has its own scale, with a line at zero: ",
      el("span", { class: "dot after" }), "value ± 2 standard errors, ", el("span", { class: "dot before" }), "model value."),
    table(["base parameter", "against the model", "value", "standard error", "relative", "model", "unit"], rows, "table of base parameters"));
}

function errorBar(p) {
  const w = 180, h = 20, spread = 2 * (p.std_error || 0), known = p.model ?? 0;
  const low = Math.min(p.value - spread, known, 0), high = Math.max(p.value + spread, known, 0);
  const x = (v) => 6 + ((v - low) / (high - low || 1)) * (w - 12), y = h / 2;
  return shape("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, class: "bar", "aria-hidden": "true" },
    shape("line", { x1: x(0), x2: x(0), y1: 1, y2: h - 1, stroke: "var(--muted)" }),
    shape("line", { x1: x(p.value - spread), x2: x(p.value + spread), y1: y, y2: y, stroke: "var(--after)", "stroke-width": 3, opacity: 0.7 }),
    ...(p.model === null ? [] : [shape("circle", { cx: x(p.model), cy: y, r: 5, fill: "none", stroke: "var(--before)", "stroke-width": 2 })]),
    shape("circle", { cx: x(p.value), cy: y, r: 3.5, fill: "var(--after)" }));
}

function bodiesSection() {
  const yes = (b) => el("span", { class: b ? "good" : "bad" }, b ? "yes" : "no");
  const least = data.identification.least_norm;
  // The quotient of first moments and a mass that is not positive, or not determined, is no centre of mass.
  const central = (b) => b.mass > 0 && (!least || least.masses.includes(b.name));
  const rows = data.identification.bodies.map((b) => [b.name, withError(b.mass, b.mass_std_error), ...b.com.map((x, k) => (central(b) ? withError(x, b.com_std_error?.[k], 3) : "–")),
    ...["ixx", "ixy", "ixz", "iyy", "iyz", "izz"].map((k) => (central(b) ? digits(b.inertia[k], 4) : "–")), yes(b.consistent)]);
  if (!rows.length) return;
  section("bodies", least ? "Least-norm values of the bodies" : "Bodies",
    el("p", {}, least ? "Values of least norm (pseudo-inverse): one of many sets of parameters that predict the same forces, not physical bodies. The data determine the base parameters. Centres of mass and inertias about them are given only where the mass is identifiable alone." : "Undetermined values come from the prior (your model): many bodies predict the same forces, and the one nearest to the prior is given. Centres of mass and inertias are in the link's frame, inertias about the centre of mass. ± is one standard error."),
    table(["body", "mass (kg)", "x (m)", "y (m)", "z (m)", "Ixx (kg m²)", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "consistent"], rows, "parameters of the bodies"));
}

/** Guaranteed intervals and credible intervals, if they were asked for. */
function intervalsSection() {
  const { intervals, posterior, base_parameters: base } = data.identification;
  const units = { mass: "kg", com: "m", first_moment: "kg m", inertia: "kg m²", central_inertia: "kg m²" };
  const unit = (i) => units[i.kind] ?? data.parameters[base.findIndex((p) => p.name === i.name)]?.unit ?? "";
  const names = { base: "base parameter", mass: "mass", com: "centre of mass", first_moment: "first moment", inertia: "inertia about the origin", central_inertia: "inertia about the centre of mass" };
  const end = (x) => (x === undefined ? "unbounded" : digits(x, 5));
  if (intervals?.length) {
    const rows = intervals.map((i) => [i.name, end(i.lower), end(i.upper), unit(i), names[i.kind]]);
    section("intervals", "Guaranteed intervals",
      el("p", {}, "Every physically consistent robot whose residuals stay within the noise bound has its value inside the interval."),
      table(["name", "from", "to", "unit", "quantity"], rows, "table of guaranteed intervals", [4]));
  }
  if (posterior) {
    const rows = posterior.intervals.map((i) => [i.name, digits(i.lower, 4), digits(i.median, 4), digits(i.upper, 4), unit(i), names[i.kind]]);
    section("posterior", "Credible intervals",
      el("p", {}, `The value lies inside with a probability of ${Math.round(100 * posterior.level)} %, given the data and the prior. The intervals respect physical consistency.`),
      table(["name", "from", "median", "to", "unit", "quantity"], rows, "table of credible intervals", [5]));
  }
}

/** Residuals of the fit and the validation, and the joints' own terms with units. */
function jointsSection() {
  const id = data.identification;
  residualTable("residuals", "Residuals", [["fit", id.fit], ["validation", id.validation]]);
  const linear = new Set(data.curves.flatMap((c) => c.series).filter((s) => s.unit === "N").map((s) => s.joint));
  const terms = [["viscous", "viscous", "N m s/rad", "N s/m"], ["coulomb", "Coulomb", "N m", "N"], ["coulomb_positive", "Coulomb forward", "N m", "N"], ["coulomb_negative", "Coulomb backward", "N m", "N"],
    ["stribeck", "Stribeck", "N m", "N"], ["stribeck_velocity", "at speed", "rad/s", "m/s"], ["stribeck_exponent", "exponent", "", ""], ["offset", "offset", "N m", "N"], ["rotor_inertia", "rotor inertia", "kg m²", "kg"]];
  const joints = id.joints.filter((j) => j !== null);
  const used = terms.filter(([key]) => joints.some((j) => typeof j[key] === "number"));
  const further = joints.flatMap((j) => [
    ...Object.entries(j.terms || {}).map(([name, x]) => `${j.name}.${name}: ${digits(x)}`),
    ...(j.turns_with ? [`The drive of ${j.name} turns with ${Object.entries(j.turns_with).map(([name, x]) => `${digits(x)} ${name}`).join(" + ")}.`] : []),
  ]);
  if (!used.length && !further.length) return;
  const cell = (j, [key, , , unit]) => withError(j[key], j.std_errors?.[key]) + (linear.has(j.name) && typeof j[key] === "number" ? ` ${unit}` : "");
  const head = used.map(([, title, unit]) => (unit ? `${title} (${unit})` : title));
  section("joints", "Friction and drives", ...(used.length ? [table(["joint", ...head], joints.map((j) => [j.name, ...used.map((t) => cell(j, t))]), "terms of the joints")] : []),
    ...further.map((text) => el("p", {}, text)));
}

/** What the data decided on each joint term. */
function termChoicesSection() {
  const choices = data.identification.terms || [];
  if (!choices.length) return;
  const rows = choices.map((c) => [c.joint, c.term.replace("_", " "), c.chosen ? "yes" : c.contradicted ? "no: would be negative" : "no", digits(c.evidence, 3), digits(c.needed, 3), percent(c.gain)]);
  section("choices", "Choice of joint terms", el("p", {}, "Evidence is the squared ratio of a term's value to its standard error. Terms with less evidence than needed are left out. The last column is the share of the joint's squared residual that the term explains beyond the others."),
    table(["joint", "term", "chosen", "evidence", "needed", "explains"], rows, "joint terms and their evidence", [1, 2]));
}

function residualTable(id, title, parts) {
  const units = new Map(data.curves.flatMap((c) => c.series).map((s) => [s.joint, s.unit]));
  const white = (r) => (r.durbin_watson === undefined ? "–" : `${digits(r.durbin_watson, 3)}${r.white ? " (white)" : ""}`);
  const chance = (r) => (r.ljung_box_p === undefined ? "–" : digits(r.ljung_box_p, 2));
  const rows = parts.flatMap(([part, list]) => (list || []).map((r) => [r.joint, part, digits(r.rms, 4), r.relative_rms > 0 ? percent(r.relative_rms) : "–", digits(r.rms_raw, 4), white(r), chance(r), units.get(r.joint) || ""]));
  if (rows.length) {
    section(id, title, el("p", {}, "Root mean square of measured minus predicted, in the band of the filter and unfiltered. The Durbin–Watson statistic is about 2 where residuals are white, so that no structure is left. The Ljung–Box p-value is the probability that white noise has at least this much correlation."),
      table(["joint", "part", "rms", "relative", "rms unfiltered", "Durbin–Watson", "Ljung–Box p", "unit"], rows, "residuals by joint"));
  }
}

function residualsSection() {
  residualTable("residuals", "Residuals", [["validation", data.validation.joints]]);
}

function checkSection() {
  const yes = (b) => el("span", { class: b ? "good" : "bad" }, b ? "yes" : "no");
  const rows = data.check.bodies.map((b) => [b.name, digits(b.mass), yes(b.consistent), digits(b.pseudo_inertia_min_eigenvalue, 3), (b.reasons?.length ? b.reasons : b.violations).join("; ") || "–"]);
  section("check", "Physical consistency", table(["body", "mass (kg)", "consistent", "smallest eigenvalue of the pseudo-inertia", "reason"], rows, "bodies", [4]));
}

/** The designed motion with its limits, and what it will show. */
function designSection() {
  const d = data.design, t = data.trajectory;
  if (t?.joints.length) {
    const holder = el("div", { id: "motion-curves", role: "tabpanel" });
    const draw = (joint) => {
      const link = { plots: [], view: { from: 0, to: decode(t.joints[joint].quantities[0].values).length } };
      holder.replaceChildren();
      for (const q of t.joints[joint].quantities) {
        new Plot(holder, { series: [{ name: q.name, values: decode(q.values), colour: "--after", line: 1.6 }], limits: q.limits, start: 0, step: t.step, unit: "s",
          xLabel: "time (s)", yLabel: q.unit, label: `${q.name} of ${t.joints[joint].joint} over time`, title: `${q.name} (${q.unit})`, link, height: 150 });
      }
      window.inertial = { ...window.inertial, link };
      link.plots.forEach((plot) => drawings.add(plot));
    };
    section("motion", "The designed motion", tabList(t.joints.map((j) => j.joint), holder, draw), holder,
      el("p", { class: "legend" }, "Dashed: the limits, margins subtracted. Drag to pan; click a plot, then scroll to zoom; double click shows all."));
  }
  const unknowns = [...d.base_parameters, ...d.joint_terms];
  const rows = unknowns.map((p) => [p.name, digits(p.value), digits(p.std_error, 3), p.relative === null ? "–" : percent(p.relative), p.weak ? el("span", { class: "bad" }, `weak: ${p.reason || ""}`) : el("span", { class: "good" }, "good")]);
  section("design", "Expected standard errors",
    el("p", {}, `This motion excites ${d.rank} of ${d.structural_rank} identifiable base parameters. Errors are those of least squares with the given noise.`),
    table(["unknown", "model value", "expected standard error", "relative", "verdict"], rows, "table of expected standard errors", [4]));
  section("limits", "Limits", table(["limit (margins subtracted)", "used"], d.limits.map((u) => [u.limit, u.left !== undefined ? `${digits(u.left, 3)} m left` : percent(u.used)]), "use of the limits"));
}

/** The table of the parameters, with what each stands for. */
function marksSection() {
  const a = data.analysis, order = ["m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"];
  const meaning = { "★": "identifiable alone", "●": "base parameter: identifiable in combination", "○": "part of another's combination", "✕": "not identifiable" };
  const mark = (b, p) => {
    const s = b.parameters[p];
    if (s === undefined) return "·";
    return s === "identifiable" ? "★" : s === "unidentifiable" ? "✕" : b.base_parameters.includes(p) ? "●" : "○";
  };
  const uses = new Map();
  for (const base of a.base_parameters) for (const name of Object.keys(base.combination)) uses.set(name, [...(uses.get(name) || []), base]);
  const formula = (base) => Object.entries(base.combination).sort((x, y) => (y[0] === base.name) - (x[0] === base.name))
    .map(([name, x], k) => `${x < 0 ? (k ? " − " : "−") : k ? " + " : ""}${Math.abs(x) === 1 ? "" : `${digits(Math.abs(x), 6)} `}${name}`).join("");
  const box = el("div", { class: "formula", id: "formula", "aria-live": "polite" }, "Point at or choose a mark to see its formula.");
  let pressed = null;
  const show = (name, symbol) => {
    const list = uses.get(name) || [];
    box.replaceChildren(el("div", {}, `${name}: ${meaning[symbol]}`), ...list.slice(0, 8).map((b) => el("div", {}, formula(b))),
      ...(list.length > 8 ? [el("div", {}, `and ${list.length - 8} more`)] : []));
  };
  const rows = a.bodies.map((b) => {
    const cells = order.map((p) => {
      const symbol = mark(b, p), name = `${b.name}.${p}`;
      if (symbol === "·") return el("td", {}, "·");
      const button = el("button", { type: "button", "aria-label": `${name}: ${meaning[symbol]}`, "data-symbol": symbol }, symbol);
      button.addEventListener("mouseenter", () => show(name, symbol));
      button.addEventListener("focus", () => show(name, symbol));
      button.addEventListener("click", () => {
        pressed?.removeAttribute("aria-pressed");
        pressed = button;
        button.setAttribute("aria-pressed", "true");
        show(name, symbol);
      });
      return el("td", {}, button);
    });
    const spans = b.joint_type === "rotor" ? ["·", "·", "·"] : [b.velocity_span, b.identifiable_span, b.transfer_freedoms];
    return el("tr", { "data-body": b.name }, el("th", { scope: "row" }, b.name), ...cells, ...spans.map((n) => el("td", {}, String(n))));
  });
  const body = el("tbody", {}, ...rows);
  const search = el("input", { type: "search", id: "body-filter", placeholder: "name" });
  const checks = Object.keys(meaning).map((symbol) => el("label", {}, el("input", { type: "checkbox", checked: true, "data-filter": symbol }), `${symbol} ${meaning[symbol]}`));
  const filter = () => {
    const on = new Set(checks.map((c) => c.querySelector("input")).filter((i) => i.checked).map((i) => i.dataset.filter));
    for (const row of rows) {
      row.classList.toggle("hidden", !row.dataset.body.toLowerCase().includes(search.value.toLowerCase()));
      row.querySelectorAll("button").forEach((b) => {
        const off = !on.has(b.dataset.symbol);
        b.parentElement.classList.toggle("dim", off);
        b.disabled = off;
      });
    }
  };
  search.addEventListener("input", filter);
  checks.forEach((c) => c.addEventListener("change", filter));
  const c = a.certificate;
  section("identifiability", "Identifiability",
    el("p", { id: "certificate" }, c.exact ? `Rank ${a.rank} of ${a.parameters} parameters is proved: upper and lower bound agree.`
      : `The rank is between ${c.rank_lower} (${c.lower_by}) and ${c.rank_upper} (${c.upper_by}).`),
    el("div", { class: "row" }, el("label", { for: "body-filter" }, "body", search), ...checks),
    box,
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "identifiability of the parameters" },
      el("table", { class: "marks" }, el("thead", {}, el("tr", {}, ...["body", ...order, "V", "K", "T"].map((h) => el("th", { scope: "col" }, h)))), body)),
    el("p", { class: "legend" }, "V, K, T: dimensions of attainable velocities, identifiable coefficients, unidentifiable transfers."));
}

/** Singular values of the data, against the rank that the structure allows. */
function singularSection() {
  const s = data.singular_values, w = drawingWidth(), h = 200, left = 60;
  const top = Math.log10(s.values[0] || 1), floor = Math.log10(Math.max(s.values.at(-1), s.values[0] * 1e-18));
  const low = Math.floor(floor), high = Math.ceil(top);
  const y = (v) => 10 + ((high - Math.log10(Math.max(v, 10 ** low))) / (high - low || 1)) * (h - 50);
  const out = shape("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "Singular values of the data in base parameters" });
  for (let e = low; e <= high; e += Math.max(1, Math.round((high - low) / 5))) {
    out.append(shape("line", { x1: left, x2: w - 10, y1: y(10 ** e), y2: y(10 ** e), stroke: "var(--grid)" }), shape("text", { x: left - 8, y: y(10 ** e) + 4, "text-anchor": "end", class: "quiet" }, `1e${e}`));
  }
  s.values.forEach((v, k) => out.append(shape("circle", { cx: left + 10 + ((w - left - 30) * k) / Math.max(1, s.values.length - 1), cy: y(v), r: 4, fill: k < s.excited ? "var(--after)" : "var(--bad)" })));
  out.append(shape("text", { x: (w + left) / 2, y: h - 8, "text-anchor": "middle", class: "quiet" }, `direction of base parameters (${s.excited} of ${s.rank} excited)`), shape("text", { x: left + 4, y: 14, class: "quiet" }, "singular value"));
  const weakest = s.values[s.excited - 1];
  section("excitation", "Excitation",
    el("p", {}, `Singular values of the regressor in base parameters (columns of unit length, joint terms eliminated). The motion excites ${s.excited} of ${s.rank} directions${weakest > 0 ? `. Condition number ${digits(s.values[0] / weakest, 3)}` : ""}.`),
    el("div", { class: "bars" }, out));
}

function graphSection() {
  const reasons = data.analysis?.null_vectors || [];
  const out = section("graph", reasons.length ? "The mechanism, and why some combinations are not identifiable" : "The mechanism");
  if (data.graph) {
    const holder = el("div", { class: "graph scroll", tabindex: 0, role: "region", "aria-label": "graph of bodies, joints and loops" });
    const svg = new DOMParser().parseFromString(data.graph, "image/svg+xml").documentElement;
    holder.append(document.importNode(svg, true));
    out.append(holder);
  }
  if (reasons.length) {
    const rows = reasons.map((r) => [r.principle, r.joint || "–", r.bodies.join(", ")]);
    out.append(el("details", {}, el("summary", {}, `Reasons for ${reasons.length} combinations`), table(["principle", "joint", "bodies"], rows, "reasons", [2])));
  }
}

function provenanceSection() {
  const p = data.provenance;
  const inputs = el("ul", {}, ...p.inputs.map((f) => el("li", {}, `${f.name}: ${f.bytes} bytes, SHA-256 `, el("code", {}, f.sha256))));
  section("provenance", "How this was obtained",
    el("dl", {}, ...(p.command ? [el("dt", {}, "command"), el("dd", {}, el("code", { id: "command" }, p.command))] : []),
      el("dt", {}, "program"), el("dd", {}, p.program), el("dt", {}, "inputs"), el("dd", {}, inputs),
      ...p.facts.flatMap((f) => [el("dt", {}, f.label), el("dd", {}, f.value)])));
}
