// Pages of identify, validate and design in a real browser.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { browser, folder, open, run, sound, unreachable } from "./look.js";

const place = folder();
const file = (name) => join(place.path, name);
const address = (name) => pathToFileURL(file(name)).href;
let chrome;
before(async () => (chrome = await browser()));
after(async () => {
  await chrome?.close();
  place.remove();
});

/** Sines for some joints, as a trajectory. */
function motion(name, joints, seconds, rate, size = () => 1) {
  const rows = [["t", ...joints.map((j) => `q.${j}`)].join(",")];
  for (let k = 0; k <= seconds * rate; k++) {
    const t = k / rate;
    const q = joints.map((name, j) => size(name) * (0.3 * Math.sin((1.1 + 0.37 * j) * t + j) + 0.2 * Math.sin((2.3 + 0.21 * j) * t)));
    rows.push([t, ...q].join(","));
  }
  writeFileSync(file(name), rows.join("\n") + "\n");
}

/** Names of a model's revolute joints. */
const jointsOf = (model) => JSON.parse(run("analyze", model, "--json")).bodies.filter((b) => b.joint_type === "revolute").map((b) => b.joint);

const withError = (x, error) => (Number.isFinite(error) ? `${digits(x)} ± ${digits(error, 2)}` : digits(x));
const relative = (r) => (r.relative_rms > 0 ? percent(r.relative_rms) : "–");
const numbers = (page, selector) => page.$$eval(`${selector} tbody tr`, (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));

/** Writes x as the page does. */
const digits = (x, n = 5) => {
  const size = Math.abs(x);
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? x.toExponential(n - 1) : String(+x.toPrecision(n));
};

const percent = (x) => `${(100 * x).toFixed(Math.abs(x) < 0.1 ? 2 : 1)} %`;

/** What every page of an identification can do. */
function identification(title, name, make) {
  describe(title, () => {
    let result;
    before(() => (result = make()));

    test("is sound at every width", () => sound(chrome, address(name)));

    test("its numbers are those of the JSON", async () => {
      const { page, close } = await open(chrome, address(name));
      const data = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
      assert.deepEqual(data.identification, result);
      const rows = await numbers(page, "#parameters");
      assert.deepEqual(rows.map((r) => [r[0], r[2], r[3]]), result.base_parameters.map((p) => [p.name, digits(p.value), digits(p.std_error, 2)]));
      if (result.bodies.length) {
        assert.deepEqual((await numbers(page, "#bodies")).map((r) => [r[0], r[1]]), result.bodies.map((b) => [b.name, withError(b.mass, b.mass_std_error)]));
      }
      const residuals = ["fit", "validation"].flatMap((part) => (result[part] ?? []).map((r) => [r.joint, part, digits(r.rms, 4), relative(r)]));
      assert.deepEqual((await numbers(page, "#residuals")).map((r) => r.slice(0, 4)), residuals);
      for (const t of ["samples", "residual of the fit", "held-out residual"]) {
        const shown = await page.$$eval(".tile", (all, t) => all.filter((e) => e.querySelector("span").textContent === t).map((e) => e.querySelector("b").textContent), t);
        const x = { "residual of the fit": result.fit_relative_rms, "held-out residual": result.validation_relative_rms }[t];
        if (shown.length) assert.equal(shown[0], t === "samples" ? String(result.samples) : `${(100 * x).toFixed(2)} %`);
      }
      // Every curve says the result's number of its joint.
      assert.ok(data.curves.length > 0);
      for (const [i, curve] of data.curves.entries()) {
        if (data.curves.length > 1) await page.selectOption("#log-choice", String(i));
        assert.deepEqual(curve.series.map((s) => [s.joint, s.rms, s.relative_rms]), result[curve.part].map((r) => [r.joint, r.rms, r.relative_rms]));
        for (const s of curve.series) {
          await page.locator("#curves").getByRole("tab", { name: s.joint, exact: true }).click();
          const text = await page.textContent("#residual-of-joint");
          const r = result[curve.part].find((r) => r.joint === s.joint);
          assert.ok(text.startsWith(`Residual of ${r.joint}: ${digits(r.rms, 4)} ${s.unit}${r.relative_rms > 0 ? `, ${percent(r.relative_rms)} of the measured` : ""}`), text);
        }
      }
      await close();
    });

    test("the keyboard reaches every control", async () => {
      const { page, close } = await open(chrome, address(name));
      assert.deepEqual(await unreachable(page), []);
      await close();
    });
  });
}

const simulated = (model, name, ...noise) => follow(model, name, jointsOf(model), 1, noise);
const follow = (model, name, joints, size, noise = []) => {
  motion(`${name}.motion.csv`, joints, 20, 100, () => size);
  run("simulate", model, file(`${name}.motion.csv`), "--ignore-limits", "--noise", ["tau=0.2", ...noise].join(","), "--out", file(`${name}.csv`));
  return file(`${name}.csv`);
};
identification("identify builtin:arm7", "arm.html", () =>
  JSON.parse(run("identify", "builtin:arm7", simulated("builtin:arm7", "arm"), "--holdout", "0.3", "--friction", "coulomb+viscous", "--offset", "--json", "--report", file("arm.html"))));

describe("the curves of builtin:arm7", () => {
  test("pan, zoom and change of joint and log", async () => {
    const { page, troubles, close } = await open(chrome, address("arm.html"));
    const view = () => page.evaluate(() => ({ ...window.inertial.link.view }));
    const all = await view();
    const plot = page.locator("canvas.plot").first();
    await plot.focus();
    await page.keyboard.press("+");
    const near = await view();
    assert.ok(near.to - near.from < 0.8 * (all.to - all.from));
    const box = await plot.boundingBox();
    await page.mouse.move(box.x + 300, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 50, { steps: 5 });
    await page.mouse.up();
    assert.ok((await view()).from > near.from);
    const tab = page.getByRole("tab", { name: "joint3" });
    await tab.click();
    assert.equal(await tab.getAttribute("aria-selected"), "true");
    assert.match(await page.textContent("#joint-curves"), /Residual of joint3/);
    await page.selectOption("#log-choice", "1");
    assert.match(await page.textContent("#joint-curves"), /Residual of joint1/);
    assert.deepEqual(troubles, []);
    await close();
  });

  test("the log plays, and sliders move links", async () => {
    const { page, close } = await open(chrome, address("arm.html"));
    const poses = () => page.evaluate(() => window.inertial.scene.poses().map((p) => [...p.R, ...p.p]));
    const rest = await poses();
    await page.getByRole("button", { name: "Play the log" }).click();
    await page.waitForTimeout(400);
    assert.notDeepEqual(await poses(), rest);
    // The part that was kept for validation plays too, and starts elsewhere.
    await page.selectOption("#motion-choice", "1");
    const { first, shown } = await page.evaluate(() => {
      const text = JSON.parse(document.getElementById("data").textContent).motions[1].q[0];
      const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      return { first: new Float32Array(bytes.buffer)[0], shown: window.inertial.scene.q[0] };
    });
    assert.equal(shown, first);
    await page.getByRole("button", { name: "Start position" }).click();
    assert.deepEqual(await poses(), rest);
    await close();
  });
});

identification("identify what builtin:arm7 carries", "payload.html", () =>
  JSON.parse(run("identify", "builtin:arm7", file("arm.csv"), "--payload", "link7", "--friction", "coulomb+viscous", "--json", "--report", file("payload.html"))));

describe("intervals of builtin:planar-2r", () => {
  test("are those of the JSON", async () => {
    const log = simulated("builtin:planar-2r", "intervals");
    const result = JSON.parse(run("identify", "builtin:planar-2r", log, "--bounds-on", "m,base", "--noise-bound", "1", "--posterior", "--json", "--report", file("intervals.html")));
    await sound(chrome, address("intervals.html"));
    const { page, close } = await open(chrome, address("intervals.html"));
    const end = (x) => (x === undefined ? "unbounded" : digits(x, 5));
    assert.deepEqual((await numbers(page, "#intervals")).map((r) => [r[0], r[1], r[2]]), result.intervals.map((i) => [i.name, end(i.lower), end(i.upper)]));
    assert.deepEqual((await numbers(page, "#posterior")).map((r) => [r[0], r[2]]), result.posterior.intervals.map((i) => [i.name, digits(i.median, 4)]));
    assert.deepEqual(await unreachable(page), []);
    await close();
  });
});

describe("validate builtin:arm7", () => {
  test("is sound and shows the residuals of the JSON", async () => {
    const result = JSON.parse(run("validate", "builtin:arm7", file("arm.csv"), "--json", "--report", file("valid.html")));
    await sound(chrome, address("valid.html"));
    const { page, close } = await open(chrome, address("valid.html"));
    assert.deepEqual((await numbers(page, "#residuals")).map((r) => [r[0], r[2]]), result.joints.map((j) => [j.joint, digits(j.rms, 4)]));
    await close();
  });
});

describe("design builtin:arm7", () => {
  test("is sound and shows the expected errors of the JSON", async () => {
    const result = JSON.parse(run("design", "builtin:arm7", "--duration", "8", "--starts", "1", "--iterations", "4", "--json", "--report", file("design.html")));
    await sound(chrome, address("design.html"));
    const { page, close } = await open(chrome, address("design.html"));
    const unknowns = [...result.base_parameters, ...result.joint_terms];
    assert.deepEqual((await numbers(page, "#design")).map((r) => [r[0], r[2]]), unknowns.map((p) => [p.name, p.std_error === null ? "–" : digits(p.std_error, 3)]));
    assert.deepEqual(await unreachable(page), []);
    await close();
  });
});

identification("identify the PUMA 560", "puma.html", () =>
  JSON.parse(run("identify", "builtin:puma560", simulated("builtin:puma560", "puma"), "--friction", "coulomb+viscous", "--json", "--report", file("puma.html"))));

identification("identify the 2RRU-1RRS machine", "machine.html", () =>
  JSON.parse(run("identify", "builtin:2rru-1rrs", follow("builtin:2rru-1rrs", "machine", ["j1", "j3", "j5"], 0.2), "--json", "--report", file("machine.html"))));

identification("identify the dual-arm space robot from its momentum", "space.html", () => {
  // Wheels turn many times.
  const wheels = ["wheel1", "wheel2", "wheel3"];
  motion("space.motion.csv", [...jointsOf("builtin:space-dual-arm"), ...wheels], 60, 10, (name) => (wheels.includes(name) ? 40 : 1));
  run("simulate", "builtin:space-dual-arm", file("space.motion.csv"), "--measured", "momentum", "--ignore-limits", "--noise", "dq=5e-5,base.v=5e-5,base.w=8e-5", "--out", file("space.csv"));
  return JSON.parse(run("identify", "builtin:space-dual-arm", file("space.csv"), "--measured", "momentum", "--noise", "dq=5e-5,base.v=5e-5,base.w=8e-5", "--json", "--report", file("space.html")));
});

identification("identify the quadruped", "quadruped.html", () =>
  JSON.parse(run("identify", "builtin:quadruped", simulated("builtin:quadruped", "quadruped", "wrench.f=1"), "--friction", "viscous", "--json", "--report", file("quadruped.html"))));

describe("a curve of a million samples", () => {
  test("opens and pans", async () => {
    motion("long.motion.csv", jointsOf("builtin:planar-2r"), 100, 10000);
    run("simulate", "builtin:planar-2r", file("long.motion.csv"), "--ignore-limits", "--noise", "tau=0.1", "--out", file("long.csv"));
    run("validate", "builtin:planar-2r", file("long.csv"), "--cutoff", "off", "--slow", "0", "--json", "--report", file("long.html"));
    const { page, troubles, close } = await open(chrome, address("long.html"));
    assert.equal(await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).curves[0].samples), 1000001);
    const frames = await page.evaluate(async () => {
      const plot = window.inertial.link.plots[0], length = plot.length;
      const spent = [];
      for (let k = 0; k < 30; k++) {
        const from = (length / 4) * (k / 30), before = performance.now();
        Object.assign(plot.view, { from, to: from + length / 2 });
        window.inertial.link.plots.forEach((p) => p.draw());
        spent.push(performance.now() - before);
      }
      return spent.sort((a, b) => a - b)[15];
    });
    console.log(`a frame of two plots of a million samples takes ${frames.toFixed(1)} ms`);
    assert.deepEqual(troubles, []);
    await close();
  });
});

const real = (robot) => new URL(`../../shared/data/${robot}/`, import.meta.url).pathname;
const identifyReal = (robot, logs, name, ...more) => JSON.parse(run("identify", join(real(robot), "model.urdf"), ...logs.map((log) => join(real(robot), `${log}.csv.gz`)),
  "--friction", "coulomb+viscous", "--offset", "--json", "--report", file(name), ...more));
for (const [robot, log] of [["tx40", "motion"], ["panda", "motion"], ["ur10", "motion"], ["kr300", "motion_A"], ["kr300", "motion_B"], ["kr300", "motion_C"]]) {
  const title = `identify ${robot} ${log}`, name = `${robot}-${log}.html`;
  if (existsSync(real(robot))) identification(title, name, () => identifyReal(robot, [log], name));
  else test(title, { skip: "no real logs beside this checkout" }, () => {});
}
if (existsSync(real("kr300"))) {
  identification("identify kr300 from two logs, with a third to validate", "kr300.html",
    () => identifyReal("kr300", ["motion_A", "motion_B"], "kr300.html", "--validate", join(real("kr300"), "motion_C.csv.gz")));
}
