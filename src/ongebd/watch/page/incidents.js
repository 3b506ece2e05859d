// The list of incidents with its filter, and the large picture or clip of one.

import { get } from "./feed.js";

const byId = (id) => document.getElementById(id);
const list = byId("incidents"), filter = byId("filter"), none = byId("none"), more = byId("more"), dialog = byId("picture");
const part = (selector) => dialog.querySelector(selector);
const image = part("img"), video = part("video"), lost = part(".lost");
const PAGE = 24, MOST = 1200;
const STRENGTH = ["weak", "medium", "strong"];
const KIND = { cut: "the picture changed suddenly", gradual: "the picture changed slowly", event: "something happened" };
const HELD = {
  cooldown: "soon after a stronger one",
  rate: "other incidents this hour are stronger",
  cap: "enough alerts for today",
  repeats: "the same thing happens often",
  hours: "outside the active hours",
};

const pad = (number) => String(number).padStart(2, "0");
export function clock(seconds) {
  const date = new Date(seconds * 1000);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

function day(seconds) {
  const date = new Date(seconds * 1000);
  if (date.toDateString() === new Date().toDateString()) return "";
  return `${date.toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short" })} `;
}

function lasted({ wall, wall_end: end, ended }) {
  if (!ended) return "going on";
  const seconds = Math.round((end ?? wall) - wall);
  return seconds < 1 ? "a moment" : seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

function make(tag, text = "", kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}

const file = (one, what) => `api/incidents/${encodeURIComponent(one.id)}/${what}`;

export class Incidents {
  constructor() {
    this.known = new Map(); // by id: those that are listed
    this.open = null;
    this.outputs = new Map(); // by camera: what tells of its incidents
    filter.addEventListener("change", () => this.load());
    more.addEventListener("click", () => this.load(true));
    part("nav").addEventListener("click", ({ target }) => target.dataset.step && this.#go(+target.dataset.step));
    part(".views").addEventListener("change", () => this.#view());
    part("[data-do=close]").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    dialog.addEventListener("close", () => this.#silence());
    document.addEventListener("keydown", ({ key, target }) => { // a button that is disabled loses the focus
      if (dialog.open && target !== video && target.type !== "radio") this.#go({ ArrowLeft: -1, ArrowRight: 1 }[key]);
    });
    for (const shown of [image, video]) {
      shown.addEventListener("error", () => {
        if (!shown.hasAttribute("src")) return;
        shown.hidden = true;
        lost.hidden = false;
      });
    }
  }

  // A camera that can be chosen.
  camera({ key, name, outputs }) {
    if (outputs) this.outputs.set(key, outputs);
    const { options } = filter.elements.stream, known = [...options].find(({ value }) => value === key);
    if (known) known.textContent = name;
    else options.add(new Option(name, key));
  }

  // Load the newest, or what is earlier than the list.
  async load(earlier = false) {
    const asked = this.#asked(), rows = this.#sorted();
    if (earlier && rows.length) asked.set("before", rows.at(-1).wall);
    const { incidents } = await get(`api/incidents?${asked}`);
    if (!earlier) {
      this.known.clear();
      list.replaceChildren();
    }
    for (const one of incidents) this.#place(one);
    more.hidden = incidents.length < PAGE;
    this.#count();
  }

  // One is new, or more is known about it; returns whether it is new.
  add(one) {
    const old = this.known.get(one.id);
    this.camera({ key: one.stream, name: one.name });
    if (!old && !this.#fits(one)) return false;
    this.#place(one);
    this.#count();
    if (dialog.open) {
      const same = this.open.id === one.id, filmed = same && one.clip && !this.open.clip;
      if (same) this.open = one;
      filmed ? this.show(one) : this.#describe();
    }
    return !old;
  }

  show(one) {
    this.open = one;
    const [clip, best] = part(".views").querySelectorAll("input");
    clip.disabled = !one.clip;
    best.disabled = !one.picture;
    part(`.views input[value=${one.clip ? "clip" : one.picture ? "best" : "onset"}]`).checked = true;
    this.#view();
    this.#describe();
    if (!dialog.open) dialog.showModal();
  }

  #asked() {
    const { stream, since, strength, quiet } = filter.elements, asked = new URLSearchParams();
    if (stream.value) asked.set("stream", stream.value);
    if (since.value) asked.set("since", Date.now() / 1000 - since.value);
    if (strength.value) asked.set("strength", strength.value);
    if (!quiet.checked) asked.set("alerts", 1);
    return asked;
  }

  #fits(one) {
    const asked = this.#asked();
    return (asked.get("stream") ?? one.stream) === one.stream && one.wall >= +asked.get("since") && one.strength >= +asked.get("strength") && !(one.held && asked.has("alerts"));
  }

  #sorted() {
    return [...this.known.values()].sort((a, b) => b.wall - a.wall);
  }

  // Put one into the list, where it belongs by time.
  #place(one) {
    const old = list.querySelector(`[data-id="${CSS.escape(one.id)}"]`), item = old ?? make("li");
    this.known.set(one.id, one);
    this.#draw(item, one);
    if (old) return;
    const after = [...list.children].find(({ dataset }) => (this.known.get(dataset.id)?.wall ?? 0) < one.wall);
    list.insertBefore(item, after ?? null);
    if (list.children.length > MOST) {
      this.known.delete(list.lastElementChild.dataset.id);
      list.lastElementChild.remove();
    }
  }

  #draw(item, one) {
    const button = item.querySelector("button") ?? make("button"), words = make("span", "", "words");
    const when = `${day(one.wall)}${clock(one.wall)}`, held = one.held && `quiet: ${HELD[one.held] ?? one.held}`;
    item.dataset.id = one.id;
    item.classList.toggle("held", Boolean(one.held));
    button.type = "button";
    button.onclick = () => this.show(this.known.get(one.id) ?? one);
    let shown = button.querySelector("img, .blank");
    const renewed = !shown || (shown.dataset.peak !== String(one.peak) && !one.ended) || (one.picture && !shown.src);
    if (renewed) {
      shown = one.picture ? make("img") : make("span", one.ended ? "no picture" : "no picture yet", "blank");
      if (one.picture) {
        Object.assign(shown, { loading: "lazy", decoding: "async", alt: "", src: `${file(one, "best")}?peak=${one.peak}` });
        shown.addEventListener("error", () => shown.replaceWith(make("span", "not kept", "blank")));
      }
    }
    shown.dataset.peak = one.peak;
    words.append(make("b", one.name), make("span", `${when} · ${lasted(one)}`), make("span", STRENGTH[one.strength], `strength s${one.strength}`));
    if (held) words.append(make("span", held, "quietly"));
    button.replaceChildren(shown, words);
    button.setAttribute("aria-label", `${one.name}, ${when}, ${lasted(one)}, ${STRENGTH[one.strength]}${held ? `, ${held}` : ""}: show its picture`);
    if (!item.firstElementChild) item.append(button);
  }

  #count() {
    none.hidden = this.known.size > 0;
  }

  #view() {
    const what = part(".views input:checked").value, one = this.open, film = what === "clip";
    this.#silence();
    lost.hidden = true;
    image.hidden = film;
    video.hidden = !film;
    if (film) {
      video.poster = file(one, "best");
      video.src = file(one, "clip");
    } else image.src = `${file(one, what)}?peak=${one.peak}`;
    image.alt = `${one.name} at ${clock(one.wall)}: ${what === "best" ? "the best picture" : "how it began"}`;
    video.setAttribute("aria-label", `Clip of ${one.name} at ${clock(one.wall)}`);
  }

  #describe() {
    const one = this.open, rows = this.#sorted(), at = rows.findIndex(({ id }) => id === one.id);
    part("h2").textContent = `${one.name}, ${day(one.wall)}${clock(one.wall)}`;
    const facts = {
      "What": KIND[one.kind] ?? "something happened",
      "Lasted": lasted(one),
      "Changes": one.count,
      "Strength": `${STRENGTH[one.strength]} (${one.peak.toFixed(2)})`,
      "Alert": one.held ? `none: ${HELD[one.held] ?? one.held}` : this.outputs.get(one.stream)?.join(", ") || "shown here only; no output is set up",
    };
    part("dl").replaceChildren(
      ...Object.entries(facts).map(([name, text]) => {
        const row = make("div");
        row.append(make("dt", name), make("dd", text));
        return row;
      }),
    );
    part("[data-step='-1']").disabled = at < 0 || at + 1 >= rows.length;
    part("[data-step='1']").disabled = at <= 0;
  }

  #go(step) {
    const rows = this.#sorted(), other = step && rows[rows.findIndex(({ id }) => id === this.open.id) - step];
    if (other) this.show(other);
  }

  // Stop loading and playing.
  #silence() {
    video.removeAttribute("src");
    video.load();
  }
}
