// The pages of `--report` in a real browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { browser, folder, open, run, sound, unreachable } from "./look.js";

const place = folder();
let chrome;
before(async () => (chrome = await browser()));
after(async () => {
  await chrome?.close();
  place.remove();
});

for (const model of ["puma560", "quadruped", "2rru-1rrs", "space-dual-arm"]) {
  describe(`analyze builtin:${model}`, () => {
    const file = join(place.path, `${model}.html`), url = pathToFileURL(file).href;
    let result;
    before(() => (result = JSON.parse(run("analyze", `builtin:${model}`, "--json", "--report", file))));

    test("is sound at every width", () => sound(chrome, url));

    test("its numbers are those of the JSON", async () => {
      const { page, close } = await open(chrome, url);
      const tiles = await page.$$eval(".tile", (all) => Object.fromEntries(all.map((t) => [t.querySelector("span").textContent, t.querySelector("b").textContent])));
      assert.equal(tiles["base parameters"], String(result.rank));
      assert.equal(tiles["parameters"], String(result.parameters));
      assert.match(await page.textContent("#certificate"), result.certificate.exact ? /is proved/ : /is between/);
      const marks = await page.$$eval(".marks tbody button", (all) => all.map((b) => b.dataset.symbol));
      assert.equal(marks.filter((s) => s === "★" || s === "●").length, result.rank);
      await close();
    });

    test("a slider moves its link, and loops stay closed", async () => {
      const { page, close } = await open(chrome, url);
      const poses = () => page.evaluate(() => window.inertial.scene.poses().map((p) => [...p.R, ...p.p]));
      const first = await poses();
      const slider = page.locator(".slider input").first();
      await slider.focus();
      for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowRight");
      const moved = await poses();
      const change = first.map((p, i) => Math.max(...p.map((x, k) => Math.abs(x - moved[i][k]))));
      assert.ok(Math.max(...change) > 1e-3, "no body moved");
      const gap = await page.evaluate(() => window.inertial.gap());
      assert.ok(gap < 1e-5, `the loops are ${gap} open`);
      await close();
    });

    test("the table filters, and a mark shows its formula", async () => {
      const { page, close } = await open(chrome, url);
      const name = result.bodies.at(-1).name;
      await page.fill("#body-filter", name);
      const rows = await page.$$eval(".marks tbody tr:not(.hidden)", (all) => all.map((r) => r.dataset.body));
      assert.deepEqual(rows, result.bodies.map((b) => b.name).filter((n) => n.toLowerCase().includes(name.toLowerCase())));
      await page.fill("#body-filter", "");
      await page.uncheck("[data-filter='✕']");
      const dim = await page.$$eval(".marks td.dim button", (all) => all.map((b) => b.dataset.symbol));
      const lost = result.bodies.flatMap((b) => Object.values(b.parameters)).filter((s) => s === "unidentifiable");
      assert.deepEqual(dim, lost.map(() => "✕"));
      const combined = result.base_parameters.find((b) => Object.keys(b.combination).length > 1);
      await page.hover(`[aria-label^="${combined.name}:"]`);
      const text = await page.textContent("#formula");
      for (const part of Object.keys(combined.combination)) assert.ok(text.includes(part), `${part} in ${text}`);
      await close();
    });

    test("is printed light", async () => {
      const { page, close } = await open(chrome, url, { dark: true });
      const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
      await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
      assert.equal(await theme(), "light");
      await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
      assert.equal(await theme(), "dark");
      await close();
    });

    test("the keyboard reaches every control", async () => {
      const { page, close } = await open(chrome, url);
      assert.deepEqual(await unreachable(page), []);
      await close();
    });
  });
}
