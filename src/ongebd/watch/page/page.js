// The page: a card for each stream, drawn up to 24 times a second.

import { Card } from "./card.js";
import { clock } from "./chart.js";
import { Feed } from "./feed.js";
import * as picture from "./picture.js";

const byId = (id) => document.getElementById(id);
const cards = new Map();
const still = matchMedia("(prefers-reduced-motion: reduce)");
let seconds = 60, spoken = 0;

const feed = new Feed({
  overview(all) {
    byId("logout").hidden = !all.token;
    const keys = new Set(all.streams.map(({ key }) => key));
    for (const [key, card] of cards) {
      if (!keys.has(key)) {
        card.element.remove();
        cards.delete(key);
      }
    }
    for (const stream of all.streams) {
      if (!cards.has(stream.key)) {
        const card = new Card(stream, all.run, picture.open);
        cards.set(stream.key, card);
        byId("streams").append(card.element);
      }
      cards.get(stream.key).status(stream);
    }
    byId("streams").dataset.count = Math.min(cards.size, 5);
    for (const card of cards.values()) {
      if (!card.chart) card.placed();
      card.chart.seconds = seconds;
    }
    const notice = byId("notice");
    notice.hidden = cards.size > 0;
    notice.textContent = "No streams yet.";
    summarise();
  },

  past(key, past) {
    cards.get(key)?.past(past);
  },

  batch(batch, from) {
    const fresh = (key) => cards.has(key) && batch.q > (from.get(key) ?? 0);
    for (const [key, points] of Object.entries(batch.points ?? {})) if (fresh(key)) cards.get(key).curve.add(points);
    for (const change of batch.states ?? []) {
      if (!fresh(change.s)) continue;
      const card = cards.get(change.s);
      card.state(change);
      if (change.state !== card.now.state) say(`${card.name}: ${change.state}. ${change.reason ?? ""}`);
    }
    for (const event of batch.events ?? []) {
      if (!fresh(event.s)) continue;
      const card = cards.get(event.s);
      if (card.event(event) && Date.now() - spoken > 5000) say(`${card.name}: boundary at ${clock(event.w)}`);
      picture.renew(card, event);
    }
    for (const [key, status] of Object.entries(batch.status ?? {})) cards.get(key)?.status(status);
    if (batch.status) summarise();
  },

  link(state, text) {
    byId("link").dataset.state = state;
    byId("link-text").textContent = text;
    document.body.classList.toggle("cut", state === "lost");
  },
});

function summarise() {
  const states = [...cards.values()].map((card) => card.now.state), live = states.filter((state) => state === "live").length;
  const text = live === states.length ? `${live} live` : `${live} of ${states.length} live`;
  byId("summary").textContent = text;
  document.title = `${live < states.length ? "! " : ""}${text} – ongebd`;
}

function say(text) {
  spoken = Date.now();
  byId("announcer").textContent = text;
}

// Wider views move by less than a pixel for a long time.
const interval = () => (still.matches ? 1000 : seconds <= 60 ? 1000 / 24 : seconds <= 600 ? 250 : 1000);
let drawn = 0;
function frame(moment) {
  requestAnimationFrame(frame);
  if (moment - drawn < interval() - 4) return;
  drawn = moment;
  const now = feed.now();
  for (const card of cards.values()) if (card.chart?.due()) card.chart.draw(now);
}

byId("windows").addEventListener("change", ({ target }) => {
  seconds = +target.value;
  document.body.dataset.window = seconds;
  drawn = 0;
  for (const card of cards.values()) {
    card.chart.seconds = seconds;
    card.chart.top = 0;
  }
});
byId("logout").addEventListener("click", async () => {
  await fetch("logout", { method: "POST" });
  location.assign("login");
});
setInterval(() => cards.forEach((card) => card.trim(feed.now())), 30000);
requestAnimationFrame(frame);
feed.load();
