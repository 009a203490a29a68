// The pods that wait for a gate, longest first. Hidden if the cluster has no PodReadinessRules.

import { duration, el, mark, number, plural, write } from "./text.js";

const most = 200; // rows; the filter finds other pods

export class Pods {
  #fleet;
  #filter;
  #card = document.getElementById("pods");
  #table = document.getElementById("pods-table");
  #rows = new Map(); // by namespace/name: { item, button, cells, drawn }

  constructor(fleet, filter, open) {
    this.#fleet = fleet;
    this.#filter = filter;
    this.#table.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-pod]");
      if (button) open(button.dataset.pod);
    });
    fleet.listen((change) => (change.whole || change.podsChanged) && this.#apply());
    filter.listen((before) => before.text !== filter.text && this.#apply());
  }

  // tick is called every second to update the times.
  tick() {
    for (const [key, row] of this.#rows) this.#time(row, this.#fleet.pods.get(key));
    this.#count();
  }

  // open marks the pod whose explanation is shown; no pod if the key is empty.
  open(key) {
    for (const [name, row] of this.#rows) mark(row.item, "data-open", name === key ? "" : undefined);
  }

  // focus moves the keyboard focus back to a pod, or to the table if the pod is gone.
  focus(key) {
    (this.#rows.get(key)?.button ?? document.getElementById("pods-heading")).focus();
  }

  #apply() {
    const pods = [...this.#fleet.pods].filter(([key, pod]) => this.#matches(key, pod));
    pods.sort(([a, pod], [b, other]) => (pod.since || Infinity) - (other.since || Infinity) || a.localeCompare(b));
    const shown = new Map(pods.slice(0, most));
    for (const [key, row] of this.#rows) {
      if (shown.has(key)) continue;
      row.item.remove();
      this.#rows.delete(key);
    }
    let i = 0;
    for (const [key, pod] of shown) {
      const row = this.#rows.get(key) ?? this.#add(key, pod);
      if (this.#table.children[i] !== row.item) this.#table.insertBefore(row.item, this.#table.children[i] ?? null);
      this.#draw(row, pod);
      i++;
    }
    this.#card.hidden = !this.#fleet.podRules && this.#fleet.pods.size === 0;
    const nothing = document.getElementById("no-pods");
    nothing.hidden = pods.length > 0 && pods.length <= most;
    write(nothing, pods.length > most ? `… and ${number(pods.length - most)} more`
      : this.#fleet.pods.size > 0 ? "No waiting pod matches the filter." : "No pod waits for its network.");
    this.#table.parentElement.hidden = pods.length === 0;
    this.#count();
  }

  #matches(key, pod) {
    const text = this.#filter.text;
    return !text || [key, pod.node ?? "", pod.gate, pod.for, this.#late(pod) ? "late" : ""].some((word) => word.toLowerCase().includes(text));
  }

  #late(pod) {
    return Boolean(pod.due) && pod.due <= this.#fleet.now() / 1000;
  }

  #count() {
    const late = [...this.#fleet.pods.values()].filter((pod) => this.#late(pod)).length;
    write(document.getElementById("pods-count"), [`${plural(this.#fleet.pods.size, "pod", "pods")}`, late ? `${number(late)} late` : ""].filter(Boolean).join(", "));
  }

  #add(key, pod) {
    const row = {
      time: el("td", { class: "waits" }),
      late: el("span", { class: "badge", "data-standing": "Problem", hidden: true }, "late"),
      node: el("td", { class: "foreign" }),
      why: el("td", { class: "foreign" }),
      gate: el("td", { class: "foreign soft" }),
    };
    row.button = el("button", { type: "button", class: "pod foreign", "data-pod": key, "aria-haspopup": "dialog" }, el("span", { class: "soft" }, `${pod.namespace}/`), pod.name);
    row.item = el("tr", {}, el("th", { scope: "row" }, row.button, row.late), row.time, row.why, row.node, row.gate);
    this.#rows.set(key, row);
    return row;
  }

  #draw(row, pod) {
    write(row.why, pod.for);
    write(row.node, pod.node ?? "–");
    write(row.gate, pod.gate);
    this.#time(row, pod);
  }

  #time(row, pod) {
    if (!pod) return;
    write(row.time, pod.since ? duration(this.#fleet.now() / 1000 - pod.since) : "–");
    if (row.late.hidden === this.#late(pod)) row.late.hidden = !row.late.hidden;
  }
}
