// Time to readiness as a distribution, computed by the server.

import { duration, el, number, plural, write } from "./text.js";

const compact = new Intl.NumberFormat("en", { notation: "compact" });
const pause = 2000; // milliseconds between two requests while nodes change

export class Times {
  #filter;
  #bars = document.getElementById("times-bars");
  #table = document.getElementById("times-table");
  #due = false;
  #timer;

  constructor(fleet, filter) {
    this.#filter = filter;
    fleet.listen(() => this.#soon());
    filter.listen((before) => before.rule !== filter.rule && this.#read());
  }

  // soon reads at once, and then at most every pause.
  #soon() {
    this.#due = true;
    if (this.#timer) return;
    const look = () => {
      this.#timer = undefined;
      if (!this.#due) return;
      this.#due = false;
      this.#read();
      this.#timer = setTimeout(look, pause);
    };
    look();
  }

  async #read() {
    const rule = this.#filter.rule;
    try {
      const answer = await fetch(`api/times?rule=${encodeURIComponent(rule)}`);
      const times = await answer.json();
      if (rule === this.#filter.rule) this.#draw(times);
    } catch {
      // The stream shows that the server is unreachable.
    }
  }

  #draw(times) {
    write(document.getElementById("times-summary"), times.count === 0 ? "No node has become ready yet."
      : `From creation until requirements were met: median ${upTo(times.median)}, p90 ${upTo(times.p90)}, of ${plural(times.count, "node", "nodes")}.`);
    const most = Math.max(1, ...times.bars.map((bar) => bar.count));
    times.bars.forEach((bar, i) => {
      const column = this.#bars.children[i] ?? this.#bars.appendChild(el("div", { class: "column" },
        el("span", { class: "count" }), el("span", { class: "bar" }), el("span", { class: "label" }, short(bar.upTo))));
      const [count, fill] = column.children;
      write(count, bar.count ? compact.format(bar.count) : "");
      fill.style.height = `${bar.count ? Math.max(2, 52 * bar.count / most) : 0}px`;
      const row = this.#table.children[i] ?? this.#table.appendChild(el("tr", {}, el("th", { scope: "row" }, bar.upTo ? short(bar.upTo) : "longer"), el("td", {})));
      write(row.children[1], number(bar.count));
    });
  }
}

const upTo = (seconds) => seconds < 1 ? "under 1s" : duration(seconds);

// short formats a bound in one unit.
function short(seconds) {
  if (!seconds) return "more";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60]]) {
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`;
  }
  return `${seconds}s`;
}
