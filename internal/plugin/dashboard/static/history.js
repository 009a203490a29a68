// Held and released nodes over time. The server records the history; the page appends live changes.

import { clock, mark, number, write } from "./text.js";

const width = 1000;
const height = 100;
const most = 2000; // points; above this, the thinned history is read from the server again
const spans = { 300: "5 minutes ago", 3600: "1 hour ago", 86400: "24 hours ago" };

export class History {
  #fleet;
  #filter;
  #points = []; // [milliseconds, held, released], oldest first; each is valid until the next
  #window = 300;
  #chosen = false; // whether the user selected the window; else it grows with the history
  #drawn = 0;
  #windows = document.querySelectorAll("[data-window]");
  #chart = document.getElementById("history-chart");

  constructor(fleet, filter) {
    this.#fleet = fleet;
    this.#filter = filter;
    for (const button of this.#windows) {
      button.addEventListener("click", () => {
        this.#chosen = true;
        this.#window = Number(button.dataset.window);
        this.#draw();
      });
    }
    fleet.listen((change) => change.whole ? this.#read() : this.#add());
    filter.listen((before) => before.rule !== filter.rule && this.#read());
  }

  // tick is called every second; long windows are redrawn less often.
  tick() {
    if (Date.now() - this.#drawn > Math.min(10000, this.#window * 4)) this.#draw();
  }

  async #read() {
    const rule = this.#filter.rule;
    this.#points = [];
    this.#add();
    try {
      const answer = await fetch(`api/history?rule=${encodeURIComponent(rule)}`);
      const points = await answer.json();
      if (rule !== this.#filter.rule) return;
      const since = this.#points[0]?.[0] ?? Infinity;
      this.#points = points.filter((point) => point[0] < since).concat(this.#points);
      this.#draw();
    } catch {
      // The stream shows that the server is unreachable.
    }
  }

  #add() {
    const counts = this.#filter.counts(this.#fleet.nodes.values());
    const last = this.#points.at(-1);
    if (last && last[1] === counts.Held && last[2] === counts.Released) return;
    this.#points.push([this.#fleet.now(), counts.Held, counts.Released]);
    if (this.#points.length > most) this.#read();
    else if (Date.now() - this.#drawn > 500) this.#draw();
  }

  #draw() {
    this.#drawn = Date.now();
    const end = this.#fleet.now();
    if (!this.#chosen && this.#points.length && end - this.#points[0][0] > 300000) this.#window = 3600;
    for (const button of this.#windows) mark(button, "aria-pressed", String(Number(button.dataset.window) === this.#window));
    const start = end - this.#window * 1000;
    const first = Math.max(0, this.#points.findLastIndex((point) => point[0] <= start));
    const points = this.#points.slice(first);
    if (!points.length) return;
    const top = Math.max(1, ...points.map((point) => point[1] + point[2]));
    const peak = points.reduce((a, b) => b[1] > a[1] ? b : a);
    const steps = (value) => {
      const at = (ms) => (Math.max(0, (ms - start) / (end - start)) * width).toFixed(1);
      return points.map((point, i) => `${at(point[0])},${value(point)} ${at(points[i + 1]?.[0] ?? end)},${value(point)}`);
    };
    const y = (nodes) => (height - nodes / top * (height - 4)).toFixed(1);
    const held = (point) => point[1] ? Math.min(height - 2, y(point[1])) : height;
    const area = (line) => `M${line[0].split(",")[0]},${height}L${line.join("L")}L${width},${height}Z`.replaceAll(" ", "L");
    const [released, front, edge] = this.#chart.children;
    released.setAttribute("d", area(steps((point) => y(point[1] + point[2]))));
    const line = steps(held);
    front.setAttribute("d", area(line));
    edge.setAttribute("d", `M${line.join("L")}`.replaceAll(" ", "L"));
    write(document.getElementById("history-max"), number(top));
    write(document.getElementById("history-start"), spans[this.#window]);
    write(document.getElementById("history-summary"), peak[1] ? `most held: ${number(peak[1])} at ${clock(Math.max(peak[0], start))}` : "no node was held");
  }
}
