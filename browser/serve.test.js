// `inertial serve` in a real browser: drop files, choose, watch, get the report.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { accessibility, browser, folder, layout, program, unreachable } from "./look.js";

const place = folder();
let chrome, server, address;
before(async () => {
  chrome = await browser();
  server = spawn(program, ["serve"], { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, TMPDIR: place.path } });
  [address] = await once(createInterface({ input: server.stdout }), "line");
});
after(async () => {
  await chrome?.close();
  server?.kill("SIGINT");
  if (server) await once(server, "exit");
  place.remove();
});

const urdf = `<robot name="pendulum"><link name="base"/><link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="hinge" type="revolute">
<parent link="base"/><child link="arm"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="5"/></joint></robot>`;
const log = ["t,q.hinge,tau.hinge", ...[...Array(1000).keys()].map((k) => {
  const s = Math.sin(0.02 * k);
  return `${0.005 * k},${0.5 * s},${-0.88 * s}`;
})].join("\n");

test("a model and a log become a report and a corrected model", async () => {
  for (const [name, text] of [["pendulum.urdf", urdf], ["swing.csv", log]]) writeFileSync(join(place.path, name), text);
  const context = await chrome.newContext({ viewport: { width: 400, height: 900 } });
  const page = await context.newPage();
  const troubles = [];
  page.on("console", (m) => m.type() === "error" && troubles.push(m.text()));
  page.on("pageerror", (e) => troubles.push(e.message));
  page.on("request", (r) => r.url().startsWith(address) || r.url().startsWith("data:") || troubles.push(r.url()));
  await page.goto(address);
  assert.deepEqual(await accessibility(page), []);
  await page.setInputFiles("#pick", ["pendulum.urdf", "swing.csv"].map((n) => join(place.path, n)));
  assert.equal(await page.inputValue("#command"), "identify");
  assert.deepEqual(await unreachable(page), []);
  const { overlaps, overflow } = await layout(page);
  assert.deepEqual([overlaps, overflow <= 0], [[], true]);
  await page.click("#go");
  await page.getByText("Done in").waitFor({ timeout: 60000 });
  assert.deepEqual(await accessibility(page), []);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the corrected model" }).click();
  assert.equal((await download).suggestedFilename(), "identified.urdf");
  const opened = context.waitForEvent("page");
  await page.getByRole("link", { name: "Open the report" }).click();
  const report = await opened;
  await report.waitForFunction(() => document.getElementById("provenance") !== null);
  assert.match(await report.textContent("h1"), /pendulum/);
  assert.deepEqual(troubles, []);
  // The links of the result, dark.
  await page.evaluate(() => (document.documentElement.dataset.theme = "dark"));
  assert.deepEqual(await accessibility(page), []);
  await context.close();
});

test("what does not work is said in words", async () => {
  writeFileSync(join(place.path, "broken.urdf"), "<robot");
  const page = await chrome.newPage();
  await page.goto(address);
  await page.setInputFiles("#pick", join(place.path, "broken.urdf"));
  await page.click("#go");
  await page.getByText("Failed").waitFor({ timeout: 60000 });
  assert.notEqual(await page.textContent("#lines"), "");
  await page.close();
});
