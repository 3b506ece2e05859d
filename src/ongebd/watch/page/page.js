// The page: incidents of all cameras, then the cameras.

import { Camera } from "./camera.js";
import { Feed } from "./feed.js";
import { Incidents, clock } from "./incidents.js";

const byId = (id) => document.getElementById(id);
const cameras = new Map(), incidents = new Incidents();
let spoken = 0;

const feed = new Feed({
  async overview(all) {
    byId("logout").hidden = !all.token;
    const keys = new Set(all.streams.map(({ key }) => key));
    for (const [key, camera] of cameras) {
      if (!keys.has(key)) {
        camera.element.remove();
        cameras.delete(key);
      }
    }
    for (const stream of all.streams) {
      if (!cameras.has(stream.key)) {
        cameras.set(stream.key, new Camera(stream));
        byId("streams").append(cameras.get(stream.key).element);
      }
      cameras.get(stream.key).status(stream);
      incidents.camera(stream);
    }
    summarise();
    await incidents.load();
  },

  batch(batch) {
    for (const [key, status] of Object.entries(batch.status ?? {})) {
      const camera = cameras.get(key);
      if (camera && status.state !== camera.now.state) say(`${camera.name}: ${status.state}. ${status.reason}`);
      camera?.status(status);
    }
    for (const one of batch.incidents ?? []) {
      if (incidents.add(one) && !one.held && Date.now() - spoken > 5000) say(`${one.name}: something happened at ${clock(one.wall)}`);
    }
    if (batch.status) summarise();
  },

  link(state, text) {
    byId("link").dataset.state = state;
    byId("link-text").textContent = text;
  },
});

function summarise() {
  const live = [...cameras.values()].filter(({ now }) => now.state === "live").length;
  const text = live === cameras.size ? `${live} live` : `${live} of ${cameras.size} live`;
  byId("summary").textContent = text;
  document.title = `${live < cameras.size ? "! " : ""}${text} – ongebd`;
}

function say(text) {
  spoken = Date.now();
  byId("announcer").textContent = text;
}

byId("logout").addEventListener("click", async () => {
  await fetch("logout", { method: "POST" });
  location.assign("login");
});
feed.load();
