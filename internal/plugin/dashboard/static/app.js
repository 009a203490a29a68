// The page: a fleet, a filter, and the components that show them.

import { Filter } from "./filter.js";
import { Fleet } from "./fleet.js";
import { History } from "./history.js";
import { Pods } from "./pods.js";
import { Rules } from "./rules.js";
import { Explanation } from "./explanation.js";
import { Stream } from "./stream.js";
import { clock, el, mark, number, plural, write } from "./text.js";
import { startTheme } from "./theme.js";
import { Tiles } from "./tiles.js";
import { Times } from "./times.js";

const by = (id) => document.getElementById(id);
const fleet = new Fleet();
const filter = new Filter();
const stream = new Stream(fleet);
const explanation = new Explanation(fleet);
const tiles = new Tiles(fleet, filter, (name) => {
  explanation.open(name, (back) => {
    tiles.open("");
    if (back) tiles.focus(name);
  });
  tiles.open(name);
});
const pods = new Pods(fleet, filter, (key) => {
  explanation.openPod(key, (back) => {
    pods.open("");
    if (back) pods.focus(key);
  });
  pods.open(key);
});
const history = new History(fleet, filter);
new Rules(fleet, filter);
new Times(fleet, filter);

const numbers = document.querySelectorAll(".number");
for (const button of numbers) {
  button.addEventListener("click", () => filter.set({ state: filter.state === button.dataset.state ? "" : button.dataset.state }));
}
by("search").addEventListener("input", (event) => filter.set({ text: event.target.value.trim().toLowerCase() }));
by("no-rule").addEventListener("click", () => {
  filter.set({ rule: "" });
  by("search").focus();
});

function showNumbers() {
  const counts = filter.counts(fleet.nodes.values());
  for (const [state, count] of Object.entries(counts)) write(document.querySelector(`[data-count=${state}]`), number(count));
  for (const [word, count] of Object.entries(filter.harm(fleet.nodes.values()))) write(document.querySelector(`[data-harm=${word}]`), count ? `${number(count)} ${word}` : "");
  const held = filter.rule ? new Filter().counts(fleet.nodes.values()).Held : counts.Held;
  document.title = `${held ? `${number(held)} held · ` : ""}${fleet.title || "Readygate"}`;
}

function showFilter() {
  for (const button of numbers) mark(button, "aria-pressed", String(button.dataset.state === filter.state));
  by("no-rule").hidden = !filter.rule;
  write(by("no-rule"), `${filter.rule} ✕`);
  mark(by("no-rule"), "aria-label", `Rule ${filter.rule}: show all rules again`);
  for (const chosen of document.querySelectorAll("[data-chosen]")) write(chosen, filter.rule);
}

fleet.listen((change) => {
  showNumbers();
  write(by("waiting"), fleet.waiting === undefined ? "" : `${plural(fleet.waiting, "pod waits", "pods wait")} for a node`);
  if (!change.whole) return;
  write(by("title"), fleet.title);
  by("unseen").hidden = fleet.unseen.length === 0;
  by("unseen").replaceChildren(...fleet.unseen.map((text) => el("p", { class: "foreign" }, text)));
});
filter.listen(() => {
  showNumbers();
  showFilter();
});

function showConnection() {
  const cluster = fleet.cluster;
  const lost = stream.since !== undefined ? "Disconnected" : cluster.lost ? "Cluster lost" : "";
  mark(by("connection"), "data-state", lost ? "lost" : fleet.heard ? "live" : "connecting");
  write(by("connection-text"), lost || (fleet.heard ? "Live" : "Connecting"));
  by("banner").hidden = !lost;
  if (stream.since !== undefined) write(by("banner"), `Disconnected since ${clock(stream.since)}. The page shows earlier data and reconnects automatically.`);
  else if (lost) write(by("banner"), `The cluster has not responded since ${clock(cluster.lost)}. The page shows earlier data; the server reconnects automatically. (${cluster.problem})`);
}

fleet.listen(showConnection);
setInterval(() => {
  stream.check();
  showConnection();
  explanation.tick();
  pods.tick();
  history.tick();
}, 1000);

startTheme(by("theme"));
stream.connect();
