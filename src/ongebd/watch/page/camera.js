// One camera: its state, its live picture, and under "Details" its curve, its settings and a mask to draw.

import { get, set } from "./feed.js";

const STATES = {
  connecting: "Connecting", live: "Live", stalled: "No pictures",
  reconnecting: "Reconnecting", ended: "Ended", failed: "Given up",
};
const LOOK = 350, CALM = 2000, NOTHING = 2000, CURVE = 1000;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const FIGURES = {
  fps: ({ fps }) => `${fps.toFixed(1)} a second`,
  lag: ({ lag }) => (lag < 1 ? `${Math.round(lag * 1000)} ms` : `${lag.toFixed(1)} s`),
  dropped: ({ dropped }) => dropped,
  reconnects: ({ reconnects }) => reconnects,
};

export class Camera {
  constructor({ key, name, masks }) {
    this.key = key;
    this.name = name;
    this.shapes = [...masks, []]; // of the mask: lists of corners
    this.element = document.getElementById("card").content.firstElementChild.cloneNode(true);
    this.part = (selector) => this.element.querySelector(selector);
    this.url = (what) => `api/streams/${encodeURIComponent(key)}/${what}`;
    const title = this.part("h3"), id = `camera-${key}`;
    title.textContent = title.title = name;
    title.id = id;
    this.element.setAttribute("aria-labelledby", id);
    this.part(".now img").alt = `What ${name} sees now`;
    this.#knob(id);
    this.#mask();
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting;
      if (this.seen) this.#look();
    }).observe(this.element);
    document.addEventListener("visibilitychange", () => this.#look());
    this.part("details").addEventListener("toggle", () => this.#plot());
  }

  status(status) {
    this.now = status;
    this.element.dataset.state = status.state;
    this.part(".state span").textContent = STATES[status.state] ?? status.state;
    this.part(".state use").setAttribute("href", `#i-${status.state}`);
    const shown = [status.state === "live" ? "" : status.reason, ...status.warnings].filter(Boolean);
    this.part(".reason").hidden = !shown.length;
    this.part(".reason").textContent = shown.join("\n");
    for (const [name, text] of Object.entries(FIGURES)) this.part(`[data-of="${name}"] dd`).textContent = text(status);
    const slider = this.part("input[type=range]");
    if (!this.tuning && document.activeElement !== slider) this.#shown(status.sensitivity);
    this.part("[name=quieten]").checked = status.quieten;
    this.part(".repeats").textContent = status.repeats ? `(quiet in the last hour: ${status.repeats})` : "";
  }

  get #watched() {
    return this.seen && !document.hidden && this.element.isConnected;
  }

  // The live picture, a few times a second while it is looked at.
  async #look() {
    if (this.looking) return;
    this.looking = true;
    const image = this.part(".now img");
    while (this.#watched) {
      image.src = `${this.url("picture")}?${Date.now()}`;
      const there = await image.decode().then(() => true, () => false);
      this.part(".now").classList.toggle("nothing", !there);
      await wait(!there ? NOTHING : still.matches ? CALM : LOOK);
    }
    this.looking = false;
  }

  // The curve, once a second while it is looked at.
  async #plot() {
    if (this.plotting) return;
    this.plotting = true;
    while (this.part("details").open && this.element.isConnected) {
      if (this.#watched) await get(this.url("curve")).then((curve) => this.#draw(curve), () => {});
      await wait(CURVE);
    }
    this.plotting = false;
  }

  #draw({ from, change, limit, marks }) {
    const top = 1.1 * Math.max(1e-6, ...change, ...limit), high = (value) => (100 - (100 * value) / top).toFixed(1);
    const line = (values) =>
      values.map((value, x) => (value === null ? "" : `${values[x - 1] == null ? "M" : "L"}${x} ${high(value)}`)).join("") || "M0 0";
    this.part(".change").setAttribute("d", line(change));
    this.part(".limit").setAttribute("d", line(limit));
    this.part(".marks").setAttribute("d", marks.map((wall) => `M${(wall - from).toFixed(1)} 0V100`).join("") || "M0 0");
    this.part(".curve").setAttribute("aria-label", `How much the picture of ${this.name} changed in ten minutes: above the limit ${marks.length} times`);
  }

  #knob(id) {
    const slider = this.part("input[type=range]");
    slider.id = `${id}-sensitivity`;
    this.part(".knob label").htmlFor = this.part("output").htmlFor = slider.id;
    slider.addEventListener("input", () => {
      this.#shown(+slider.value);
      this.wanted = +slider.value;
      this.#tune();
    });
    this.part("[name=quieten]").addEventListener("change", ({ target }) => {
      set(this.key, "quieten", target.checked).catch(({ message }) => {
        this.part(".problem").textContent = `Couldn't set it: ${message}`;
      });
    });
  }

  // Send the newest value; while one is being sent, the next waits.
  async #tune() {
    if (this.tuning) return;
    this.tuning = true;
    const problem = this.part(".problem");
    try {
      while (this.wanted != null) {
        const wanted = this.wanted;
        this.wanted = null;
        await set(this.key, "sensitivity", wanted);
        this.now.sensitivity = wanted;
        problem.textContent = "";
        await wait(150);
      }
    } catch (error) {
      this.wanted = null;
      this.#shown(this.now.sensitivity);
      problem.textContent = `Couldn't set it: ${error.message}`;
    } finally {
      this.tuning = false;
    }
  }

  #shown(value) {
    const slider = this.part("input[type=range]");
    slider.value = value;
    slider.setAttribute("aria-valuetext", value.toFixed(2));
    slider.style.setProperty("--at", `${((value - 0.1) / 0.8) * 100}%`);
    this.part("output").textContent = value.toFixed(2);
  }

  // A mask: each click on the picture adds a corner.
  #mask() {
    const picture = this.part(".now"), text = this.part("textarea"), tools = this.part(".mask");
    const drawn = () => {
      const path = (shape) => (shape.length ? `M${shape.map((at) => at.join(" ")).join("L")}Z` : "");
      this.part(".drawn").setAttribute("d", tools.classList.contains("open") ? this.shapes.map(path).join("") || "M0 0" : "M0 0");
      text.value = `masks = ${JSON.stringify(this.shapes.filter((shape) => shape.length > 2))}`;
    };
    tools.addEventListener("click", ({ target }) => {
      const act = target.dataset.do, last = this.shapes.at(-1);
      if (act === "draw") {
        target.setAttribute("aria-expanded", picture.classList.toggle("drawing", tools.classList.toggle("open")));
        if (picture.classList.contains("drawing")) picture.scrollIntoView({ block: "nearest" });
      }
      if (act === "next" && last.length > 2) this.shapes.push([]);
      if (act === "undo" && !last.pop() && this.shapes.length > 1) this.shapes.pop();
      drawn();
    });
    picture.addEventListener("click", ({ clientX, clientY }) => {
      if (!picture.classList.contains("drawing")) return;
      const { left, top, width, height } = this.part(".now img").getBoundingClientRect();
      const place = (value) => +Math.min(1, Math.max(0, value)).toFixed(3);
      this.shapes.at(-1).push([place((clientX - left) / width), place((clientY - top) / height)]);
      drawn();
    });
    text.addEventListener("focus", () => text.select());
  }
}
