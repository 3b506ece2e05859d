// A stream's curve as uPlot wants it, in columns: time, error, mean, threshold, smallest and largest error (of
// bins; null for single points). A row of nulls is where the line breaks.

const SCALE = 1e-4, READY = 2, FIRST = 4;
const LOW = 4, HIGH = 5;
const FINE_SECONDS = 75, LONGEST_BREAK = 1.5;
const empty = () => [[], [], [], [], [], []];
const value = (whole) => (whole === null ? null : whole * SCALE);

export class Curve {
  constructor() {
    this.forget();
  }

  forget() {
    this.fine = empty();
    this.bins = [];
    this.last = 0; // time of the newest point
    this.step = 0; // usual seconds between points
  }

  // Begin with the past as the server packs it.
  load(past) {
    this.forget();
    for (const packed of past.bins) this.bins.push(new Bins(packed));
    const loaded = this.bins;
    this.bins = [];
    this.add(past.fine); // its points are in the bins already
    this.bins = loaded;
  }

  add(points) {
    let ms = 0;
    for (let i = 0; i < points.t.length; i++) {
      ms += points.t[i];
      this.#point(ms / 1000, value(points.e[i]), value(points.m[i]), value(points.h[i]), points.f[i]);
    }
    const [times] = this.fine;
    if (times.length > 256 && times[times.length >> 1] < this.last - FINE_SECONDS) {
      const half = times.length >> 1;
      for (const column of this.fine) column.splice(0, half);
    }
  }

  #point(time, error, mean, threshold, flags) {
    let gap = time - this.last;
    if (gap < -2) this.fine = empty(); // the clock was set back
    else if (gap < 0) [time, gap] = [this.last, 0]; // times never decrease in a chart
    const broken = this.last > 0 && (flags & FIRST || gap > Math.max(LONGEST_BREAK, 5 * this.step));
    if (broken && gap > 0) push(this.fine, this.last + gap / 2, null, null, null, null, null);
    if (gap > 0 && this.last > 0 && !(flags & FIRST)) this.step += (Math.min(gap, 60) - this.step) * 0.2;
    const ready = flags & READY;
    push(this.fine, time, error, ready ? mean : null, ready ? threshold : null, null, null);
    for (const bins of this.bins) bins.add(time, error, ready ? mean : null, ready ? threshold : null, broken);
    this.last = time;
  }

  // The rows for a view of so many seconds.
  rows(seconds) {
    const wide = this.bins.find((bins) => seconds > FINE_SECONDS && seconds <= bins.width * 1210);
    return wide ? wide.rows : this.fine;
  }

  // The newest point's values, or null.
  newest() {
    const [times, errors, means, thresholds] = this.fine, at = times.length - 1;
    return at < 0 ? null : { time: times[at], error: errors[at], mean: means[at], threshold: thresholds[at] };
  }
}

// A row for each bin, as on the server: the average, smallest and largest error of its points.
class Bins {
  constructor(packed) {
    this.width = packed.w;
    this.rows = empty();
    this.number = null;
    let number = 0;
    for (let i = 0; i < packed.n.length; i++) {
      number += packed.n[i];
      const ready = packed.f[i] & READY;
      const broken = packed.f[i] & FIRST || (i > 0 && packed.n[i] * this.width > Math.max(3, 2 * this.width));
      this.#begin(number, value(packed.e[i]), ready ? value(packed.m[i]) : null, ready ? value(packed.h[i]) : null, broken);
      const last = this.rows[LOW].length - 1;
      this.rows[LOW][last] = value(packed.l[i]);
      this.rows[HIGH][last] = value(packed.u[i]);
      this.count = packed.c[i];
    }
  }

  add(time, error, mean, threshold, broken) {
    const number = Math.floor(time / this.width);
    if (number < this.number - 4) this.#restart();
    if (this.number === null || number > this.number) {
      this.#begin(number, error, mean, threshold, broken);
      if (this.rows[0].length > 3000) for (const column of this.rows) column.splice(0, 1500);
      return;
    }
    const [, errors, means, thresholds, lows, highs] = this.rows, last = errors.length - 1;
    this.count += 1;
    errors[last] += (error - errors[last]) / this.count;
    means[last] = mean;
    thresholds[last] = threshold;
    lows[last] = Math.min(lows[last], error);
    highs[last] = Math.max(highs[last], error);
  }

  #begin(number, error, mean, threshold, broken) {
    const middle = (number + 0.5) * this.width;
    if (broken && this.number !== null) push(this.rows, middle - this.width / 2, null, null, null, null, null);
    push(this.rows, middle, error, mean, threshold, error, error);
    this.number = number;
    this.count = 1;
  }

  #restart() {
    this.rows = empty();
    this.number = null;
  }
}

function push(rows, ...row) {
  row.forEach((cell, column) => rows[column].push(cell));
}

// Position of the first time that is not before `time`.
export function firstAt(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
