// One stream's card: its state and figures, its chart, its newest boundaries, and its sensitivity.

import { Chart, clock } from "./chart.js";
import { Curve } from "./curve.js";
import { tune } from "./feed.js";

const STATES = {
  connecting: "Connecting", live: "Live", stalled: "Stalled",
  reconnecting: "Reconnecting", ended: "Ended", failed: "Failed",
};
const MOST_EVENTS = 2000, MOST_PICTURES = 24, HOUR = 3600;

const whole = new Intl.NumberFormat();
const FIGURES = {
  fps: ({ fps }) => `${fps.toFixed(1)} fps`,
  lag: ({ lag }) => (lag < 1 ? `${Math.round(lag * 1000)} ms` : `${lag.toFixed(1)} s`),
  dropped: ({ dropped }) => whole.format(dropped),
  boundaries: ({ boundaries }) => whole.format(boundaries),
  reconnects: ({ reconnects }) => whole.format(reconnects),
};

export class Card {
  // `open(card, event)` shows a boundary's picture.
  constructor(stream, run, open) {
    this.key = stream.key;
    this.name = stream.name;
    this.run = run;
    this.open = open;
    this.curve = new Curve();
    this.events = new Map();
    this.states = [];
    this.element = document.getElementById("card").content.firstElementChild.cloneNode(true);
    this.part = (selector) => this.element.querySelector(selector);
    const title = this.part("h2"), id = `stream-${stream.key}`;
    title.textContent = stream.name;
    title.title = stream.name;
    title.id = id;
    this.element.setAttribute("aria-labelledby", id);
    this.#knob(id);
  }

  // Once the card is in the page, and has a size.
  placed() {
    this.chart = new Chart(this.part(".chart"), this.part(".readout"), this, (event) => this.open(this, event));
  }

  status(status) {
    this.now = status;
    this.element.dataset.state = status.state;
    const state = this.part(".state");
    state.querySelector("span").textContent = STATES[status.state] ?? status.state;
    state.querySelector("use").setAttribute("href", `#i-${status.state}`);
    const reason = this.part(".reason"), why = status.state === "live" ? "" : status.reason;
    const shown = [why, ...status.warnings].filter(Boolean);
    reason.hidden = !shown.length;
    reason.textContent = shown.join("\n");
    for (const [name, text] of Object.entries(FIGURES)) {
      const place = this.part(`[data-of="${name}"]`);
      place.querySelector("dd").textContent = text(status);
      place.classList.toggle("notable", (name === "dropped" || name === "reconnects") && status[name] > 0);
    }
    const slider = this.part("input");
    if (!this.tuning && document.activeElement !== slider) this.#shown(status.sensitivity);
    this.#describe();
  }

  past(past) {
    this.curve.load(past);
    this.states = past.states;
    this.events = new Map(past.events.map((event) => [event.n, event]));
    this.#strip();
  }

  state(change) {
    this.states.push(change);
    if (this.states.length > 500) this.states.shift();
  }

  // A boundary began, or its centre or kind is known; returns whether it is new.
  event(event) {
    const known = this.events.has(event.n);
    this.events.set(event.n, event);
    if (this.events.size > MOST_EVENTS) this.events.delete(this.events.keys().next().value);
    const strip = this.part(".strip"), old = strip.querySelector(`[data-n="${event.n}"]`);
    const item = this.#item(event);
    if (old) old.querySelector("img") ? this.#caption(old, event) : old.replaceWith(item);
    else strip.prepend(item);
    while (strip.children.length > MOST_PICTURES) strip.lastElementChild.remove();
    this.part(".none").hidden = true;
    return !known;
  }

  // Drop what is older than the longest view.
  trim(now) {
    for (const [number, event] of this.events) if (event.w < now - HOUR - 60) this.events.delete(number);
    while (this.states.length > 1 && this.states[1].w < now - HOUR - 60) this.states.shift();
  }

  picture(event) {
    return `api/streams/${encodeURIComponent(this.key)}/thumbnails/${event.n}?run=${this.run}`;
  }

  clip(event) {
    return `api/streams/${encodeURIComponent(this.key)}/clips/${event.n}?run=${this.run}`;
  }

  #strip() {
    const newest = [...this.events.values()].sort((a, b) => b.n - a.n).slice(0, MOST_PICTURES);
    this.part(".strip").replaceChildren(...newest.map((event) => this.#item(event)));
    this.part(".none").hidden = newest.length > 0;
  }

  #item(event) {
    const item = document.createElement("li"), button = document.createElement("button"), text = document.createElement("span");
    item.dataset.n = event.n;
    button.type = "button";
    if (event.img) {
      const image = document.createElement("img");
      image.loading = "lazy";
      image.decoding = "async";
      image.alt = "";
      image.width = 112;
      image.height = 63;
      image.addEventListener("error", () => image.replaceWith(blank("not kept")));
      image.src = this.picture(event);
      button.append(image);
    } else {
      button.append(blank("no picture"));
    }
    button.append(text);
    button.addEventListener("click", () => this.open(this, this.events.get(event.n) ?? event));
    item.append(button);
    this.#caption(item, event);
    return item;
  }

  #caption(item, event) {
    item.querySelector("span:last-child").textContent = event.k ? `${clock(event.w)} ${event.k}` : clock(event.w);
    item.firstElementChild.setAttribute("aria-label", `Boundary ${event.n} of ${this.name} at ${clock(event.w)}${event.k ? `, ${event.k}` : ""}: show its picture`);
  }

  #knob(id) {
    const slider = this.part("input");
    slider.id = `${id}-sensitivity`;
    this.part("label").htmlFor = slider.id;
    this.part("output").htmlFor = slider.id;
    slider.addEventListener("input", () => {
      this.#shown(+slider.value);
      this.wanted = +slider.value;
      this.#tune();
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
        await tune(this.key, wanted);
        this.now.sensitivity = wanted;
        problem.textContent = "";
        await new Promise((done) => setTimeout(done, 150));
      }
    } catch (error) {
      this.wanted = null;
      this.#shown(this.now.sensitivity);
      problem.textContent = `Not set: ${error.message}`;
    } finally {
      this.tuning = false;
    }
  }

  #shown(value) {
    const slider = this.part("input");
    slider.value = value;
    slider.setAttribute("aria-valuetext", value.toFixed(2));
    slider.style.setProperty("--at", `${((value - 0.1) / 0.8) * 100}%`);
    this.part("output").textContent = value.toFixed(2);
  }

  #describe() {
    const newest = this.curve.newest(), { state, boundaries } = this.now;
    const level = newest?.error == null ? "" : `; error ${newest.error.toFixed(2)}`;
    const limit = newest?.threshold == null ? "" : `, threshold ${newest.threshold.toFixed(2)}`;
    this.part(".chart").setAttribute(
      "aria-label",
      `Curve of ${this.name}: ${STATES[state] ?? state}${level}${limit}; ${boundaries} boundaries in all`,
    );
  }
}

function blank(text) {
  const box = document.createElement("span");
  box.className = "blank";
  box.textContent = text;
  return box;
}
