// Curves on a canvas that stay smooth with a million samples: each pixel column shows the least and greatest value
// under it, found in a pyramid of extremes, so that no peak is lost.

class Extremes {
  constructor(values) {
    this.levels = [{ low: values, high: values, width: 1 }];
    let { low, high, width } = this.levels[0];
    while (low.length > 64) {
      const n = Math.ceil(low.length / 4);
      const nextLow = new Float32Array(n), nextHigh = new Float32Array(n);
      for (let i = 0; i < n; i++) {
        let a = Infinity, b = -Infinity;
        for (let j = 4 * i; j < Math.min(4 * i + 4, low.length); j++) {
          if (low[j] < a) a = low[j];
          if (high[j] > b) b = high[j];
        }
        nextLow[i] = a;
        nextHigh[i] = b;
      }
      width *= 4;
      this.levels.push((({ low, high } = { low: nextLow, high: nextHigh }), { low, high, width }));
    }
  }

  /** Least and greatest of the samples from..to (whole numbers, the last not included). */
  range(from, to) {
    let a = Infinity, b = -Infinity;
    const take = (level, i) => {
      const { low, high } = this.levels[level];
      if (low[i] < a) a = low[i];
      if (high[i] > b) b = high[i];
    };
    let level = 0, lo = from, hi = to;
    // Up the pyramid: the ragged ends at each level, whole blocks above.
    while (lo < hi) {
      if (level + 1 >= this.levels.length || hi - lo < 8) {
        for (let i = lo; i < hi; i++) take(level, i);
        break;
      }
      while (lo < hi && lo % 4 !== 0) take(level, lo++);
      while (lo < hi && hi % 4 !== 0 && hi !== this.levels[level].low.length) take(level, --hi);
      lo = Math.floor(lo / 4);
      hi = Math.ceil(hi / 4);
      level++;
    }
    return [a, b];
  }
}

/** Round numbers from low to high, about `count` of them. */
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((s) => s >= raw);
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) out.push(+(k * step).toPrecision(12));
  return out;
}

const short = (x) => {
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return x.toExponential(1);
  return String(+x.toPrecision(4));
};

/** Several series over one uniform axis; `link` shares the view between plots. */
class Plot {
  constructor(holder, { series, start, step, unit, xLabel, yLabel, label, link, limits = [], title, height = 190, zero = false }) {
    this.series = series.map((s) => ({ ...s, extremes: new Extremes(s.values) }));
    Object.assign(this, { start, step, unit, xLabel, yLabel, link, title, zero, limits: limits.filter((l) => l !== null && l !== undefined) });
    this.length = Math.max(...series.map((s) => s.values.length));
    this.canvas = document.createElement("canvas");
    this.canvas.className = "plot";
    this.canvas.style.height = `${height}px`;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${label}. Arrow keys pan, plus and minus zoom, zero shows all.`);
    if (title) {
      const words = document.createElement("h3");
      words.textContent = title;
      holder.append(words);
    }
    holder.append(this.canvas);
    this.own = { from: 0, to: this.length };
    if (link) link.plots.push(this);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  get view() {
    return this.link ? this.link.view : this.own;
  }

  show(from, to) {
    const span = Math.min(Math.max(to - from, 16), this.length);
    const start = Math.min(Math.max(from, 0), this.length - span);
    Object.assign(this.view, { from: start, to: start + span });
    this.refresh();
  }

  refresh() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      (this.link ? this.link.plots : [this]).forEach((plot) => plot.draw());
    });
  }

  listen() {
    const c = this.canvas;
    let last = null;
    const place = (e) => (e.offsetX - this.left) / Math.max(1, this.inner);
    c.addEventListener("wheel", (e) => {
      // The page scrolls over plots unless one is chosen or Ctrl is held.
      if (!e.ctrlKey && document.activeElement !== c) return;
      e.preventDefault();
      this.zoom(Math.exp(e.deltaY * 0.002), place(e));
    }, { passive: false });
    c.addEventListener("pointerdown", (e) => {
      last = e.clientX;
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointermove", (e) => {
      if (last !== null) {
        const { from, to } = this.view, shift = ((last - e.clientX) / Math.max(1, this.inner)) * (to - from);
        last = e.clientX;
        this.show(from + shift, to + shift);
      }
      this.cursor = e.offsetX;
      this.refresh();
    });
    const end = () => (last = null);
    c.addEventListener("pointerup", end);
    c.addEventListener("pointercancel", end);
    c.addEventListener("pointerleave", () => {
      this.cursor = undefined;
      this.refresh();
    });
    c.addEventListener("dblclick", () => this.show(0, this.length));
    c.addEventListener("keydown", (e) => {
      const { from, to } = this.view, step = 0.1 * (to - from);
      if (e.key === "ArrowLeft") this.show(from - step, to - step);
      else if (e.key === "ArrowRight") this.show(from + step, to + step);
      else if (e.key === "+") this.zoom(0.7, 0.5);
      else if (e.key === "-") this.zoom(1 / 0.7, 0.5);
      else if (e.key === "0") this.show(0, this.length);
      else return;
      e.preventDefault();
    });
  }

  zoom(factor, at) {
    const { from, to } = this.view, centre = from + at * (to - from);
    this.show(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  draw() {
    const c = this.canvas, ratio = window.devicePixelRatio || 1, width = c.clientWidth, height = c.clientHeight;
    if (width === 0) return;
    if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
    }
    const g = c.getContext("2d"), css = getComputedStyle(c), colour = (n) => css.getPropertyValue(n).trim();
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "11px system-ui, sans-serif";
    const left = (this.left = 52), top = 8, bottom = 32, inner = (this.inner = width - left - 10), tall = height - top - bottom;
    const { from, to } = this.view;
    let low = this.zero ? 0 : Infinity, high = this.zero ? 0 : -Infinity;
    for (const s of this.series) {
      const [a, b] = s.extremes.range(Math.max(0, Math.floor(from)), Math.min(s.values.length, Math.ceil(to) + 1));
      low = Math.min(low, a);
      high = Math.max(high, b);
    }
    for (const limit of this.limits) [low, high] = [Math.min(low, limit), Math.max(high, limit)];
    if (!(high > low)) [low, high] = Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
    const margin = 0.06 * (high - low);
    [low, high] = [this.zero ? 0 : low - margin, high + margin];
    const x = (i) => left + ((i - from) / (to - from)) * inner;
    const y = (v) => top + (1 - (v - low) / (high - low)) * tall;
    g.strokeStyle = colour("--grid");
    g.fillStyle = colour("--muted");
    g.lineWidth = 1;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const v of ticks(low, high, 4)) {
      g.globalAlpha = 0.6;
      line(g, left, y(v), left + inner, y(v));
      g.globalAlpha = 1;
      g.fillText(short(v), left - 6, y(v));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const v of ticks(this.start + from * this.step, this.start + to * this.step, Math.max(2, inner / 90))) {
      const at = x((v - this.start) / this.step);
      g.globalAlpha = 0.6;
      line(g, at, top, at, top + tall);
      g.globalAlpha = 1;
      g.fillText(short(v), at, top + tall + 4);
    }
    g.fillText(this.xLabel, left + inner / 2, height - 13);
    g.save();
    g.translate(10, top + tall / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(this.yLabel, 0, -6);
    g.restore();
    g.save();
    g.beginPath();
    g.rect(left, top, inner, tall);
    g.clip();
    g.strokeStyle = colour("--bad");
    g.setLineDash([5, 4]);
    for (const limit of this.limits) line(g, left, y(limit), left + inner, y(limit));
    g.setLineDash([]);
    for (const s of this.series) this.curve(g, s, colour(s.colour), x, y, from, to, left, inner);
    g.restore();
    if (this.cursor !== undefined) this.reading(g, colour, x, left, inner, top, tall);
  }

  curve(g, s, paint, x, y, from, to, left, inner) {
    g.strokeStyle = paint;
    g.lineWidth = s.line || 1.3;
    g.beginPath();
    const perPixel = (to - from) / inner, n = s.values.length;
    if (perPixel < 2) {
      let pen = false;
      for (let i = Math.max(0, Math.floor(from)); i < Math.min(n, Math.ceil(to) + 1); i++) {
        const there = Number.isFinite(s.values[i]);
        if (there) g[pen ? "lineTo" : "moveTo"](x(i), y(s.values[i]));
        pen = there;
      }
    } else {
      for (let pixel = 0; pixel < inner; pixel++) {
        const a = Math.max(0, Math.floor(from + pixel * perPixel)), b = Math.min(n, Math.floor(from + (pixel + 1) * perPixel) + 1);
        if (a >= b) continue;
        const [lo, hi] = s.extremes.range(a, b);
        if (lo > hi) continue;
        g.lineTo(left + pixel, y(hi));
        g.lineTo(left + pixel, y(lo));
      }
    }
    g.stroke();
  }

  reading(g, colour, x, left, inner, top, tall) {
    const { from, to } = this.view;
    const i = Math.round(from + ((this.cursor - left) / inner) * (to - from));
    if (i < 0 || i >= this.length) return;
    g.strokeStyle = colour("--muted");
    line(g, x(i), top, x(i), top + tall);
    const words = [`${short(this.start + i * this.step)} ${this.unit || ""}`];
    for (const s of this.series) if (i < s.values.length) words.push(`${s.name} ${short(s.values[i])}`);
    const text = words.join("   ");
    g.textAlign = x(i) > left + inner / 2 ? "right" : "left";
    g.textBaseline = "top";
    g.fillStyle = colour("--text");
    g.fillText(text, x(i) + (g.textAlign === "left" ? 6 : -6), top + 2);
  }
}

function line(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}
