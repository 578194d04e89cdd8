// What a person would notice on a page, measured: errors, network requests, overlapping text, reach of the keyboard.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** The program under test. */
export const program = process.env.INERTIAL ?? new URL("../target/release/inertial", import.meta.url).pathname;

/** Runs it; what it prints. */
export const run = (...args) => execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });

/** A folder for the pages of one test file. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "inertial-pages-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** What holds for every page, at every width. */
export async function sound(chrome, url) {
  for (const { width, dark } of [{ width: 400 }, { width: 1600 }, { width: 1280, dark: true }]) {
    const { page, troubles, close } = await open(chrome, url, { width, dark });
    const { overlaps, overflow } = await layout(page);
    assert.deepEqual(overlaps, [], `overlapping text at ${width} px`);
    assert.ok(overflow <= 0, `the page is ${overflow} px wider than a window of ${width} px`);
    assert.deepEqual(await accessibility(page), [], `accessibility, ${dark ? "dark" : "light"}`);
    assert.deepEqual(troubles, []);
    await close();
  }
}

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
// Without these Chromium calls its maker at every start.
const QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic", "--no-first-run"];

export async function browser() {
  return chromium.launch({
    executablePath: process.env.INERTIAL_CHROMIUM ?? "/usr/bin/chromium",
    args: [...QUIET, "--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
  });
}

/** Opens a page; `troubles` collects console errors, exceptions and requests that leave the file. */
export async function open(chrome, url, { width = 1280, height = 900, dark = false } = {}) {
  const context = await chrome.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  const troubles = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && troubles.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => troubles.push(`exception: ${e.message}`));
  page.on("request", (r) => r.url() !== url && !r.url().startsWith("data:") && !r.url().startsWith("blob:") && troubles.push(`request: ${r.url()}`));
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("provenance") !== null);
  return { page, troubles, close: () => context.close() };
}

/** Violations of axe-core's rules, each in a line. */
export async function accessibility(page) {
  // The page's own policy forbids added scripts; the debugger may still evaluate one.
  const source = (await import("node:fs")).readFileSync(axe, "utf8");
  await page.evaluate(source);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations.map((v) => `${v.id}: ${v.help} at ${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")}`);
}

/** Pairs of visible texts whose boxes overlap, and whether the page is wider than the window. */
export async function layout(page) {
  return page.evaluate(() => {
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const clip = (box, element) => {
      let out = { left: box.left, right: box.right, top: box.top, bottom: box.bottom };
      for (let e = element; e && e !== document.body; e = e.parentElement) {
        const style = getComputedStyle(e);
        if (style.overflowX === "visible" && style.overflowY === "visible") continue;
        const own = e.getBoundingClientRect();
        out = { left: Math.max(out.left, own.left), right: Math.min(out.right, own.right), top: Math.max(out.top, own.top), bottom: Math.min(out.bottom, own.bottom) };
      }
      return out;
    };
    while (walker.nextNode()) {
      const node = walker.currentNode, parent = node.parentElement;
      if (!node.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(parent.tagName) || parent.classList.contains("skip")) continue;
      if (!parent.checkVisibility()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        const c = clip(box, parent);
        if (c.right - c.left > 1 && c.bottom - c.top > 1) texts.push({ ...c, text: node.data.trim().slice(0, 30), node });
      }
    }
    const overlaps = [];
    texts.sort((a, b) => a.top - b.top);
    for (let i = 0; i < texts.length; i++) {
      for (let j = i + 1; j < texts.length && texts[j].top < texts[i].bottom; j++) {
        const a = texts[i], b = texts[j];
        if (a.node === b.node) continue;
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        // Line boxes are taller than letters: a few pixels of them may touch.
        if (wide > 2 && tall > 6) overlaps.push(`"${a.text}" and "${b.text}"`);
      }
    }
    return { overlaps, overflow: document.documentElement.scrollWidth - window.innerWidth };
  });
}

/** Controls that Tab never reaches. */
export async function unreachable(page) {
  await page.evaluate(() => {
    document.activeElement?.blur();
    window.scrollTo(0, 0);
  });
  const count = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input, select, summary, canvas[tabindex], [tabindex='0']")];
    const own = all.filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0);
    own.forEach((e) => (e.dataset.reach = "no"));
    return own.length;
  });
  for (let i = 0; i < count + 5; i++) {
    await page.keyboard.press("Tab");
    await page.evaluate(() => document.activeElement?.dataset && (document.activeElement.dataset.reach = "yes"));
  }
  return page.evaluate(() => [...document.querySelectorAll("[data-reach='no']")].map((e) => `${e.tagName} ${e.id || e.textContent.slice(0, 30)}`));
}
