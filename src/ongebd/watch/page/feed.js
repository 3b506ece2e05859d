// The connection to the server: what is there, and everything from now on. It reconnects after any break.

const SILENCE = 6000, RETRY = 2500, LONGEST_RETRY = 30000;

async function answer(response) {
  if (response.status === 401) {
    location.assign("login");
    return new Promise(() => {}); // the page is left
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

export async function get(path) {
  return answer(await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" }));
}

export async function set(key, setting, value) {
  const headers = { "Content-Type": "application/json" }, body = JSON.stringify({ [setting]: value });
  return answer(await fetch(`api/streams/${encodeURIComponent(key)}/${setting}`, { method: "POST", headers, body }));
}

export class Feed {
  // `on` has overview(all), which may load more, batch(batch) and link(state, text).
  constructor(on) {
    this.on = on;
    this.run = null;
    this.source = null;
    this.attempt = 0;
    this.failures = 0;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.load()));
    setInterval(() => this.source && Date.now() - this.heard > SILENCE && this.#lost(""), 1000);
  }

  // Load everything, then follow: what changes meanwhile comes again.
  async load() {
    const attempt = ++this.attempt;
    this.#close();
    try {
      const all = await get("api/streams");
      if (attempt !== this.attempt) return;
      if (this.run !== null && all.run !== this.run) {
        location.reload(); // another server, perhaps another page
        return;
      }
      this.run = all.run;
      await this.on.overview(all);
      if (attempt === this.attempt) this.#follow(all.q);
    } catch (problem) {
      if (attempt === this.attempt) this.#lost(problem.message);
    }
  }

  #follow(after) {
    this.heard = Date.now();
    const source = (this.source = new EventSource(`api/feed?after=${this.run}-${after}`));
    source.onopen = () => this.on.link("good", "Connected");
    source.onmessage = ({ data }) => {
      if (source !== this.source) return;
      this.heard = Date.now();
      this.failures = 0;
      this.on.batch(JSON.parse(data));
    };
    source.addEventListener("gap", () => source === this.source && this.#again(1000));
    source.onerror = () => {
      if (source !== this.source) return;
      if (source.readyState === EventSource.CLOSED) this.#lost("");
      else this.on.link("lost", "Connection lost, trying again…");
    };
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

  #close() {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }
}
