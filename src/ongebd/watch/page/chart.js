// One stream's chart: the curve, the band from mean to threshold, boundary marks, and spans without pictures.

import { firstAt } from "./curve.js";

const TOPS = [0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.5, 2, 3, 5, 8];
const LOWER_AFTER = 4; // seconds that a smaller scale must suffice before it is taken
const UNSEEN = 2000; // ms between two drawings of a chart that is scrolled out of sight

let colours = null;
const media = matchMedia("(prefers-color-scheme: dark)");
media.addEventListener("change", () => (colours = null));

function colour(name) {
  if (!colours) {
    const style = getComputedStyle(document.documentElement);
    const read = (key) => style.getPropertyValue(`--${key}`).trim();
    colours = Object.fromEntries(
      ["error", "threshold", "mean", "band", "range", "boundary", "grid", "axis", "down", "hatch", "font"].map((key) => [key, read(key)]),
    );
  }
  return colours[name];
}

const pad = (number) => String(number).padStart(2, "0");
export function clock(seconds, fraction = false) {
  const date = new Date(seconds * 1000);
  const whole = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return fraction ? `${whole}.${String(date.getMilliseconds()).padStart(3, "0")}` : whole;
}

export class Chart {
  // `stream` has `curve`, `events` (Map) and `states`; `pick(event)` is called for a click near a mark.
  constructor(element, readout, stream, pick) {
    this.element = element;
    this.readout = readout;
    this.stream = stream;
    this.seconds = 60;
    this.top = 0;
    this.lowerSince = null;
    this.visible = true;
    this.plot = new uPlot(this.#options(), [[], [], [], [], [], []], element);
    this.plot.over.addEventListener("click", (event) => this.#click(event, pick));
    this.plot.over.addEventListener("mousemove", (event) => {
      this.plot.over.style.cursor = this.#near(event) ? "pointer" : "default";
    });
    new ResizeObserver(() => this.#fit()).observe(element);
    new IntersectionObserver(([entry]) => (this.visible = entry.isIntersecting), { rootMargin: "80px" }).observe(element);
    media.addEventListener("change", () => this.plot.redraw());
  }

  // Draw the span that ends at `now`, Unix seconds.
  draw(now) {
    const rows = this.stream.curve.rows(this.seconds), start = now - this.seconds;
    this.#scale(rows, start, now);
    this.plot.series[1].width = this.seconds > 60 ? 1 : 1.5;
    this.plot.batch(() => {
      this.plot.setData(rows, false);
      this.plot.setScale("x", { min: start, max: now });
      this.plot.setScale("y", { min: 0, max: this.top });
    });
    if (this.plot.cursor.left >= 0) this.#read();
    this.drawn = performance.now();
  }

  // Whether it is visible, or was drawn too long ago.
  due() {
    return this.visible || performance.now() - (this.drawn ?? -Infinity) > UNSEEN;
  }

  #options() {
    const font = () => `11px ${colour("font")}`;
    return {
      width: Math.max(200, this.element.clientWidth),
      height: this.element.clientHeight,
      legend: { show: false },
      padding: [6, 6, 0, 0],
      cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { show: false } },
      scales: { x: { time: true, auto: false }, y: { auto: false, range: (_, low, high) => [low ?? 0, high ?? 1] } },
      axes: [
        {
          size: 22, gap: 3, space: 68, incrs: [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800], stroke: () => colour("axis"), font: font(),
          grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false },
          values: (plot, times) => times.map((time) => this.#label(plot, time)),
        },
        {
          size: 38, gap: 4, space: 32, stroke: () => colour("axis"), font: font(),
          grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false },
          values: (_, values) => values.map((value) => String(+value.toFixed(4))),
        },
      ],
      series: [
        {},
        { label: "error", stroke: () => colour("error"), width: 1.5, points: { show: false } },
        { label: "mean", stroke: () => colour("mean"), width: 1, points: { show: false } },
        { label: "threshold", stroke: () => colour("threshold"), width: 1.25, dash: [5, 3], points: { show: false } },
        { label: "smallest", width: 0, points: { show: false } },
        { label: "largest", width: 0, points: { show: false } },
      ],
      bands: [
        { series: [3, 2], fill: () => colour("band") },
        { series: [5, 4], fill: () => colour("range") },
      ],
      hooks: {
        drawClear: [(plot) => this.#downtime(plot)],
        draw: [(plot) => this.#marks(plot)],
        setCursor: [() => this.#read()],
      },
    };
  }

  // A time below the chart; none where it would be cut off at an edge.
  #label(plot, time) {
    const { min, max } = plot.scales.x, edge = (28 / Math.max(200, plot.bbox.width / devicePixelRatio)) * (max - min);
    if (time < min + edge / 2 || time > max - edge) return "";
    return this.seconds > 900 ? clock(time).slice(0, 5) : clock(time);
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (width && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  // The vertical scale: it grows immediately and shrinks only after a while, in steps that do not flicker.
  #scale([times, errors, , thresholds, , highs], start, now) {
    let most = 0;
    for (let i = firstAt(times, start); i < times.length; i++) {
      if (errors[i] > most) most = errors[i];
      if (highs[i] > most) most = highs[i];
      if (thresholds[i] > most) most = thresholds[i];
    }
    const wanted = most === 0 ? 0.1 : (TOPS.find((top) => top >= most * 1.06) ?? most * 1.2);
    if (wanted < this.top) this.lowerSince ??= now;
    else this.lowerSince = null;
    if (wanted > this.top || (this.lowerSince !== null && now - this.lowerSince > LOWER_AFTER)) {
      this.top = wanted;
      this.lowerSince = null;
    }
  }

  // Hatch the spans in which the stream was not live, which also shows without colour.
  #downtime(plot) {
    const { ctx, bbox } = plot, { min, max } = plot.scales.x, { states } = this.stream;
    if (min == null) return;
    states.forEach((state, i) => {
      const end = Math.min(max, states[i + 1]?.w ?? max), from = Math.max(min, state.w);
      if (state.state === "live" || end <= from) return;
      const left = plot.valToPos(from, "x", true), width = plot.valToPos(end, "x", true) - left;
      const dot = devicePixelRatio, step = 7 * dot;
      ctx.save();
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.rect(left, bbox.top, width, bbox.height);
      ctx.clip();
      ctx.fillStyle = colour("down");
      ctx.fill();
      ctx.strokeStyle = colour("hatch");
      ctx.lineWidth = dot;
      ctx.beginPath();
      for (let x = Math.floor((left - bbox.height) / step) * step; x < left + width; x += step) {
        ctx.moveTo(x, bbox.top + bbox.height);
        ctx.lineTo(x + bbox.height, bbox.top);
      }
      ctx.stroke();
      ctx.font = `${11 * dot}px ${colour("font")}`;
      const text = state.state, wide = ctx.measureText(text).width;
      if (width > wide + 12 * dot) {
        const middle = left + width / 2, y = bbox.top + 18 * dot;
        ctx.fillStyle = colour("down");
        ctx.fillRect(middle - wide / 2 - 4 * dot, y - 11 * dot, wide + 8 * dot, 15 * dot);
        ctx.fillStyle = colour("axis");
        ctx.textAlign = "center";
        ctx.fillText(text, middle, y);
      }
      ctx.restore();
    });
  }

  // A flag at each onset, with a line below it where there is room; ticks, then bars of how many, where there is not.
  #marks(plot) {
    const { ctx, bbox } = plot, { min, max } = plot.scales.x, dot = devicePixelRatio;
    if (min == null) return;
    const shown = [...this.stream.events.values()].filter(({ w }) => w >= min && w <= max);
    const room = bbox.width / dot / Math.max(1, shown.length);
    ctx.save();
    ctx.setLineDash([]);
    ctx.fillStyle = ctx.strokeStyle = colour("boundary");
    ctx.lineWidth = 1.25 * dot;
    if (room < 3) this.#crowd(plot, shown);
    else for (const event of shown) {
      const x = plot.valToPos(event.w, "x", true), size = (room > 24 ? 5 : 3.5) * dot;
      if (room < 9) {
        ctx.globalAlpha = 0.85;
        ctx.fillRect(Math.round(x), bbox.top, Math.max(1, Math.round(dot)), 8 * dot);
        continue;
      }
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x - size, bbox.top);
      ctx.lineTo(x + size, bbox.top);
      ctx.lineTo(x, bbox.top + 1.3 * size);
      ctx.fill();
      ctx.globalAlpha = room > 24 ? 0.75 : 0.3;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  // How many onsets there are in each few pixels, as bars from the top.
  #crowd(plot, shown) {
    const { ctx, bbox } = plot, wide = 4 * devicePixelRatio, tall = 14 * devicePixelRatio;
    const counts = new Array(Math.ceil(bbox.width / wide)).fill(0);
    for (const { w } of shown) counts[Math.min(counts.length - 1, Math.floor((plot.valToPos(w, "x", true) - bbox.left) / wide))]++;
    const most = Math.max(4, ...counts);
    ctx.globalAlpha = 0.85;
    counts.forEach((count, i) => ctx.fillRect(bbox.left + i * wide, bbox.top, wide - devicePixelRatio, (tall * count) / most));
  }

  // The event whose mark is nearest to the pointer, if one is close.
  #near(pointer) {
    let nearest = null, least = 9;
    for (const event of this.stream.events.values()) {
      const far = Math.abs(this.plot.valToPos(event.w, "x") - pointer.offsetX);
      if (far < least) [nearest, least] = [event, far];
    }
    return nearest;
  }

  #click(pointer, pick) {
    const event = this.#near(pointer);
    if (event) pick(event);
  }

  // The values under the pointer, as text above the curve.
  #read() {
    const { left } = this.plot.cursor, [times, errors, means, thresholds, , highs] = this.stream.curve.rows(this.seconds);
    if (left == null || left < 0 || !times.length) {
      this.readout.textContent = "";
      return;
    }
    const at = Math.min(times.length - 1, firstAt(times, this.plot.posToVal(left, "x")));
    const shown = (name, number) => (number == null ? "" : `  ${name} ${number.toFixed(3)}`);
    this.readout.textContent =
      clock(times[at], this.seconds <= 60) + shown("error", errors[at]) + shown("at most", highs[at]) + shown("threshold", thresholds[at]) + shown("mean", means[at]);
  }
}
