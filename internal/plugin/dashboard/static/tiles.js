// One tile per node. A change touches only changed tiles, independent of the number of nodes.

import { clock, el, mark, number, plural, stateNames, duration, write } from "./text.js";

const order = new Intl.Collator("en", { numeric: true });
const flashes = 200; // maximum number of tiles that are highlighted at once

export class Tiles {
  #fleet;
  #filter;
  #grid = document.getElementById("tiles");
  #tiles = new Map(); // by name
  #names = []; // in the order of the page
  #visible; // shown tiles; undefined: to be computed
  #current; // the tile that Tab focuses
  #calm = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(fleet, filter, open) {
    this.#fleet = fleet;
    this.#filter = filter;
    const named = (event) => event.target.closest("button[data-name]");
    this.#grid.addEventListener("click", (event) => {
      const tile = named(event);
      if (!tile) return;
      this.#goTo(tile);
      open(tile.dataset.name);
    });
    this.#grid.addEventListener("keydown", (event) => this.#key(event));
    this.#grid.addEventListener("focusin", (event) => this.#read(named(event)));
    this.#grid.addEventListener("pointerover", (event) => this.#read(named(event)));
    this.#grid.addEventListener("pointerleave", () => this.#read(undefined));
    this.#read(undefined);
    fleet.listen((change) => this.#apply(change));
    filter.listen((before) => this.#refilter(before));
  }

  // open marks the node whose explanation is shown; no node if the name is empty.
  open(name) {
    for (const tile of this.#grid.querySelectorAll("[data-open]")) mark(tile, "data-open", undefined);
    if (this.#tiles.has(name)) mark(this.#tiles.get(name), "data-open", "");
  }

  // focus moves the keyboard focus back to a node, for example when its explanation is closed.
  focus(name) {
    const tile = this.#tiles.get(name);
    if (tile && !tile.hidden) this.#goTo(tile);
    else this.#current?.focus();
  }

  #apply(change) {
    for (const name of change.gone) this.#drop(name);
    const fresh = change.nodes.filter((name) => !this.#tiles.has(name));
    const known = change.nodes.filter((name) => this.#tiles.has(name));
    const changed = known.map((name) => this.#tiles.get(name)).filter((tile) => this.#draw(tile));
    if (!change.whole && changed.length <= flashes) changed.forEach((tile) => this.#flash(tile));
    if (fresh.length) this.#add(fresh);
    this.#fit();
    this.#settle();
  }

  #add(fresh) {
    for (const name of fresh) {
      const tile = el("button", { type: "button", class: "tile", tabindex: "-1", "data-name": name, "aria-haspopup": "dialog" });
      this.#tiles.set(name, tile);
      this.#draw(tile);
    }
    fresh.sort(order.compare);
    const all = this.#names.concat(fresh).sort(order.compare);
    if (this.#names.length === 0) {
      const page = document.createDocumentFragment();
      page.append(...all.map((name) => this.#tiles.get(name)));
      this.#grid.append(page);
    } else {
      const added = new Set(fresh);
      for (let i = all.length - 1, next = null; i >= 0; next = this.#tiles.get(all[i]), i--) {
        if (added.has(all[i])) this.#grid.insertBefore(this.#tiles.get(all[i]), next);
      }
    }
    this.#names = all;
  }

  #drop(name) {
    const tile = this.#tiles.get(name);
    if (!tile) return;
    const focused = tile === document.activeElement;
    if (tile === this.#current) this.#current = undefined;
    const neighbour = tile.nextElementSibling ?? tile.previousElementSibling;
    this.#tiles.delete(name);
    this.#names.splice(this.#names.indexOf(name), 1);
    tile.remove();
    if (focused && neighbour) this.#goTo(neighbour);
  }

  // draw updates the tile of a node, and returns whether its state changed.
  #draw(tile) {
    const node = this.#fleet.nodes.get(tile.dataset.name);
    const state = this.#filter.stateOf(node);
    const changed = tile.dataset.state !== state;
    mark(tile, "data-state", state);
    mark(tile, "data-moving", node.moving ? "" : undefined);
    mark(tile, "data-down", node.down ? "" : undefined);
    mark(tile, "data-stuck", state === "Held" && this.#filter.sees(node.stuck) ? "" : undefined);
    mark(tile, "data-limited", state === "Released" && this.#filter.sees(node.limited) ? "" : undefined);
    const words = this.#filter.words(node).map((word) => `, ${word}`).join("");
    mark(tile, "aria-label", `${node.name}, ${stateNames[state]}${words}${node.moving ? ", about to change" : ""}${node.down ? ", kubelet not Ready" : ""}`);
    const hide = !this.#filter.matches(node);
    if (tile.hidden !== hide) tile.hidden = hide;
    this.#visible = undefined;
    return changed;
  }

  #flash(tile) {
    if (this.#calm.matches || tile.hidden) return;
    tile.animate([{ outline: "3px solid currentColor", outlineOffset: "0px" }, { outline: "3px solid transparent", outlineOffset: "6px" }], 900);
  }

  #refilter(before) {
    for (const tile of this.#tiles.values()) this.#draw(tile);
    if (before.rule !== this.#filter.rule || before.state !== this.#filter.state) this.#grid.scrollTop = 0;
    this.#settle();
  }

  // settle updates the number of shown nodes and the tile that Tab focuses.
  #settle() {
    const shown = this.#shown();
    const all = this.#names.length;
    write(document.getElementById("shown"), shown.length === all ? plural(all, "node", "nodes") : `${number(shown.length)} of ${plural(all, "node", "nodes")}`);
    const nothing = document.getElementById("nothing");
    nothing.hidden = shown.length > 0;
    write(nothing, all === 0 ? "This cluster has no nodes yet. New nodes appear here." : "No node matches the filter.");
    if (!this.#current || this.#current.hidden) this.#point(shown[0]);
  }

  // fit selects the size of tiles by their number. The limits for growing and shrinking differ, so that a node that comes
  // and goes does not change the layout each time.
  #fit() {
    const count = this.#names.length;
    const now = this.#grid.dataset.density;
    const sizes = [["large", 60], ["medium", 400], ["small", 1200], ["tiny", Infinity]];
    const [density] = sizes.find(([size, most]) => count <= (size === now ? most * 1.2 : most));
    if (density !== now) this.#grid.dataset.density = density;
  }

  #shown() {
    this.#visible ??= this.#names.map((name) => this.#tiles.get(name)).filter((tile) => !tile.hidden);
    return this.#visible;
  }

  #point(tile) {
    if (this.#current) this.#current.tabIndex = -1;
    this.#current = tile;
    if (tile) tile.tabIndex = 0;
  }

  #goTo(tile) {
    this.#point(tile);
    tile.focus({ preventScroll: false });
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const shown = this.#shown();
    const columns = getComputedStyle(this.#grid).gridTemplateColumns.split(" ").length;
    const here = shown.indexOf(document.activeElement);
    const last = shown.length - 1;
    const there = { ArrowRight: here + 1, ArrowLeft: here - 1, ArrowDown: here + columns, ArrowUp: here - columns, Home: 0, End: last,
      PageDown: Math.min(last, here + 10 * columns), PageUp: Math.max(0, here - 10 * columns) }[event.key];
    if (here < 0 || there === undefined) return;
    event.preventDefault();
    if (shown[there]) this.#goTo(shown[there]);
  }

  // read shows the details of a tile in the line above the tiles.
  #read(tile) {
    const node = tile && this.#fleet.nodes.get(tile.dataset.name);
    const readout = document.getElementById("readout");
    if (!node) return write(readout, "Point at a node, or use the arrow keys. Press Enter for the explanation.");
    const by = Object.entries(node.rules ?? {}).filter(([, state]) => state === "Held").map(([rule]) => rule);
    const since = node.since ? ` for ${duration(this.#fleet.now() / 1000 - node.since)}` : "";
    const what = by.length ? `held by ${by.join(", ")}${since}` : stateNames[node.state];
    const facts = [
      node.stuck ? `stuck: held longer than the deadline of ${node.stuck.join(", ")}` : "",
      node.limited ? `limited: ${node.limited.join(", ")} would hold the node, but maxUnavailable is reached` : "",
      node.until ? `requirements are met and must remain met for ${duration(node.until - this.#fleet.now() / 1000)} more, until ${clock(1000 * node.until)} (minReadySeconds)` : "",
    ].filter(Boolean);
    write(readout, [`${node.name}: ${what}`, ...facts, ...(node.causes ?? []), ...(node.missing ?? [])].join(" · "));
  }
}
