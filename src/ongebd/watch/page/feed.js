// The connection to the server: the streams, their past, and everything from now on. It reconnects after any break.

const SILENCE = 6000, RETRY = 2500, LONGEST_RETRY = 30000;

export async function get(path) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" });
  if (response.status === 401) {
    location.assign("login");
    return new Promise(() => {}); // the page is left
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

export async function tune(key, sensitivity) {
  const response = await fetch(`api/streams/${encodeURIComponent(key)}/sensitivity`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ sensitivity }),
  });
  if (response.status === 401) location.assign("login");
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
}

export class Feed {
  // `on` has overview(all), past(key, past), batch(batch), link(state, text); batches are handed on once.
  constructor(on) {
    this.on = on;
    this.run = null;
    this.last = 0; // number of the newest batch
    this.from = new Map(); // stream → number of the batch up to which its past was loaded
    this.early = []; // batches that came before all pasts were loaded
    this.offset = null; // the server's clock minus ours, seconds
    this.source = null;
    this.attempt = 0;
    this.failures = 0;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.load()));
    setInterval(() => this.#watch(), 1000);
  }

  // Unix seconds by the server's clock.
  now() {
    return Date.now() / 1000 + (this.offset ?? 0);
  }

  // Load everything, then follow.
  async load() {
    const attempt = ++this.attempt;
    this.#close();
    this.early = [];
    this.from.clear();
    try {
      const all = await get("api/streams");
      if (attempt !== this.attempt) return;
      if (this.run !== null && all.run !== this.run) {
        location.reload(); // another server, perhaps another page
        return;
      }
      this.run = all.run;
      this.#time(all.now);
      this.on.overview(all);
      this.#follow(all.q);
      await Promise.all(all.streams.map(({ key }) => this.#past(key, attempt)));
      if (attempt !== this.attempt) return;
      const early = this.early;
      this.early = null;
      for (const batch of early) this.on.batch(batch, this.from);
    } catch (problem) {
      if (attempt === this.attempt) this.#lost(problem.message);
    }
  }

  async #past(key, attempt) {
    const past = await get(`api/streams/${encodeURIComponent(key)}/past`);
    if (attempt !== this.attempt) return;
    this.from.set(key, past.q);
    this.on.past(key, past);
  }

  #follow(after) {
    this.heard = Date.now();
    const source = (this.source = new EventSource(`api/feed?after=${this.run}-${after}`));
    source.onopen = () => this.on.link("good", "Connected");
    source.onmessage = ({ data }) => {
      if (source !== this.source) return;
      this.heard = Date.now();
      this.failures = 0;
      const batch = JSON.parse(data);
      this.#time(batch.now);
      if (this.early) this.early.push(batch);
      else this.on.batch(batch, this.from);
    };
    source.addEventListener("gap", () => source === this.source && this.#again(1000));
    source.onerror = () => {
      if (source !== this.source) return;
      if (source.readyState === EventSource.CLOSED) this.#lost("");
      else this.on.link("lost", "Connection lost, trying again…");
    };
  }

  // Ours and the server's clock: a late message makes the server seem slow, so the largest offset is the best.
  #time(now) {
    const offset = now - Date.now() / 1000;
    this.offset = this.offset === null ? offset : Math.max(offset, this.offset - 0.0005);
    if (offset < this.offset - 30) this.offset = offset; // one of the clocks was set
  }

  #lost(why) {
    this.on.link("lost", why ? `No connection: ${why}` : "Connection lost, trying again…");
    this.#again(Math.min(LONGEST_RETRY, RETRY * 1.6 ** this.failures++) * (0.8 + 0.4 * Math.random()));
  }

  // Load all once more, after a while.
  #again(delay) {
    this.#close();
    this.retry = setTimeout(() => !document.hidden && this.load(), delay);
  }

  #watch() {
    if (this.source && Date.now() - this.heard > SILENCE) this.#lost("");
  }

  #close() {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }
}
