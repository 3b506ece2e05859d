// The large picture or the clip of a boundary, with its facts, and buttons to the ones before and after.

import { clock } from "./chart.js";

const dialog = document.getElementById("picture");
const image = dialog.querySelector("img"), video = dialog.querySelector("video"), lost = dialog.querySelector(".lost"), facts = dialog.querySelector("dl");
const button = (name) => dialog.querySelector(`[data-do="${name}"]`);
let card = null, event = null;

const seconds = (value) => `${value.toFixed(2)} s`;

export function open(ofCard, ofEvent) {
  [card, event] = [ofCard, ofEvent];
  show();
  if (!dialog.open) dialog.showModal();
}

// More is known about the boundary.
export function renew(ofCard, ofEvent) {
  if (dialog.open && card === ofCard) {
    const filmed = event.n === ofEvent.n && ofEvent.clip && !event.clip;
    if (event.n === ofEvent.n) event = ofEvent;
    filmed ? show() : describe();
  }
}

function show() {
  lost.hidden = event.img || event.clip;
  image.hidden = !event.img || event.clip;
  video.hidden = !event.clip;
  if (event.clip) {
    video.poster = event.img ? card.picture(event) : "";
    video.src = card.clip(event);
    video.setAttribute("aria-label", `Clip of ${card.name} around ${clock(event.w)}, boundary ${event.n}`);
  } else {
    silence();
  }
  image.alt = `${card.name} at ${clock(event.w)}, when boundary ${event.n} began`;
  if (event.img) image.src = card.picture(event);
  describe();
}

function describe() {
  dialog.querySelector("h2").textContent = `${card.name}, ${clock(event.w)}`;
  const rows = [
    ["boundary", `no. ${event.n}`],
    ["onset", `${new Date(event.w * 1000).toLocaleDateString()} ${clock(event.w, true)}`],
    ["onset in the stream", seconds(event.t)],
    ["centre", event.c == null ? "not known yet" : `${seconds(event.c)} (${(event.c - event.t).toFixed(2)} s after the onset)`],
    ["score", event.z.toFixed(3)],
    ...(event.p == null ? [] : [["peak", event.p.toFixed(3)]]),
    ...(event.k ? [["kind", event.k]] : []),
  ];
  facts.replaceChildren(
    ...rows.map(([name, text]) => {
      const row = document.createElement("div"), term = document.createElement("dt"), value = document.createElement("dd");
      term.textContent = name;
      value.textContent = text;
      row.append(term, value);
      return row;
    }),
  );
  button("earlier").disabled = !next(-1);
  button("later").disabled = !next(1);
}

function next(step) {
  let best = null;
  for (const other of card.events.values())
    if ((other.n - event.n) * step > 0 && (!best || (best.n - other.n) * step > 0)) best = other;
  return best;
}

function go(step) {
  const other = next(step);
  if (!other) return;
  event = other;
  show();
}

// Stop loading and playing.
function silence() {
  video.removeAttribute("src");
  video.load();
}

video.addEventListener("error", () => {
  if (!video.hasAttribute("src")) return;
  video.hidden = true;
  image.hidden = !event.img;
  lost.hidden = event.img;
});
dialog.addEventListener("close", silence);
image.addEventListener("error", () => {
  image.hidden = true;
  lost.hidden = false;
});
button("close").addEventListener("click", () => dialog.close());
button("earlier").addEventListener("click", () => go(-1));
button("later").addEventListener("click", () => go(1));
dialog.addEventListener("click", (click) => click.target === dialog && dialog.close());
dialog.addEventListener("keydown", (key) => {
  if (key.target === video) return; // the video uses the arrows itself
  if (key.key === "ArrowLeft") go(-1);
  else if (key.key === "ArrowRight") go(1);
});
