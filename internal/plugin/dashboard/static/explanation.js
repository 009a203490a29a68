// The explanation of one node or pod, in a side panel: the same as `kubectl readiness why`.

import { showPod } from "./podexplanation.js";
import { clock, duration, el, stateNames, withCommand, write } from "./text.js";

const refresh = 10000; // milliseconds: the server computes the ages in sentences

export class Explanation {
  #fleet;
  #subject; // the subject of the explanation; undefined while none is shown
  #panel = document.getElementById("panel");
  #body = document.getElementById("panel-body");
  #state = "";
  #shown = "";
  #asked = 0;
  #request;

  constructor(fleet) {
    this.#fleet = fleet;
    document.getElementById("panel-close").addEventListener("click", () => this.close());
    document.addEventListener("keydown", (event) => event.key === "Escape" && event.target.id !== "search" && this.#subject && this.close());
    fleet.listen((change) => {
      if (this.#subject && (change.whole || this.#subject.in(change))) this.#changed();
    });
  }

  // open shows the explanation of a node. It calls closed when the panel is closed.
  open(name, closed) {
    this.#open({
      name,
      path: `api/nodes/${encodeURIComponent(name)}/explanation`,
      in: (change) => change.nodes.includes(name) || change.gone.includes(name),
      state: () => this.#fleet.nodes.get(name)?.state,
      say: (state) => (state ? `now ${stateNames[state]}` : "gone"),
      show: (explanation) => this.#show(explanation),
      closed,
    });
  }

  // openPod shows the explanation of a pod, by namespace/name.
  openPod(key, closed) {
    const [namespace, name] = key.split("/");
    this.#open({
      name: key,
      path: `api/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/explanation`,
      in: (change) => change.pods.includes(key),
      state: () => this.#fleet.pods.has(key),
      say: (waits) => (waits ? "waiting for its network" : "no longer waiting"),
      show: (explanation) => showPod(explanation, (at) => this.#time(at)),
      closed,
    });
  }

  #open(subject) {
    const before = this.#subject;
    this.#subject = subject;
    if (before && before.path !== subject.path) before.closed(false);
    this.#state = subject.state();
    this.#shown = "";
    write(document.getElementById("panel-heading"), subject.name);
    this.#body.replaceChildren(el("p", { class: "soft" }, "Loading …"));
    this.#body.scrollTop = 0;
    if (!this.#panel.open) this.#panel.show();
    document.getElementById("panel-heading").focus();
    this.#ask();
  }

  close() {
    const subject = this.#subject;
    this.#subject = undefined;
    this.#request?.abort();
    this.#panel.close();
    subject?.closed(true);
  }

  // tick is called every second to update ages and remaining times.
  tick() {
    if (!this.#subject) return;
    for (const time of this.#body.querySelectorAll("time")) write(time, time.hasAttribute("data-until") ? this.#left(time.dateTime) : this.#ago(time.dateTime));
    if (!document.hidden && Date.now() - this.#asked > refresh) this.#ask();
  }

  #changed() {
    const state = this.#subject.state();
    if (state !== this.#state) write(document.getElementById("announcement"), `${this.#subject.name} is ${this.#subject.say(state)}`);
    this.#state = state;
    this.#ask();
  }

  async #ask() {
    this.#asked = Date.now();
    this.#request?.abort();
    const request = new AbortController();
    const subject = this.#subject;
    this.#request = request;
    try {
      const answer = await fetch(subject.path, { signal: request.signal });
      const text = await answer.text();
      if (request.signal.aborted || text === this.#shown) return;
      this.#shown = text;
      const content = JSON.parse(text);
      this.#body.replaceChildren(...(answer.ok ? subject.show(content) : [el("p", { class: "problem foreign" }, content.error)]));
    } catch (error) {
      if (request.signal.aborted || this.#shown) return; // keep the previous explanation
      this.#body.replaceChildren(el("p", { class: "problem" }, `The explanation could not be loaded: ${error.message}. The page retries.`));
    }
  }

  #show(explanation) {
    return [
      el("p", { class: "headline foreign", "data-state": explanation.state }, explanation.headline),
      ...this.#section("What to do", (explanation.next ?? []).map((text) => el("li", { class: "foreign" }, ...withCommand(text))), "ol"),
      ...(explanation.chapters ?? []).map((chapter) => this.#chapter(chapter)),
      ...this.#section("Events", (explanation.events ?? []).toReversed().map((event) => this.#event(event)), "ul"),
      ...this.#section("Could not be read", (explanation.unseen ?? []).map((text) => el("li", { class: "foreign" }, text)), "ul"),
      el("p", { class: "soft foreign" }, `Ready is ${explanation.ready}`, explanation.unschedulable ? ", cordoned" : "", ", joined ", this.#time(explanation.created),
        explanation.otherTaints?.length ? `, other taints: ${explanation.otherTaints.join(", ")}` : ""),
    ];
  }

  #section(heading, items, tag) {
    return items.length ? [el("h3", {}, heading), el(tag, { class: "items" }, ...items)] : [];
  }

  #chapter(chapter) {
    const state = chapter.held ? "Held" : chapter.state;
    const stuck = state === "Held" && chapter.stuck;
    const limited = state === "Released" && chapter.cause === "Limit";
    const word = stuck ? "stuck" : limited ? "limited" : "";
    return el("section", { class: "chapter", "data-state": state },
      el("h3", { class: "foreign" }, el("span", { class: "mark", "data-state": state, "data-stuck": stuck, "data-limited": limited }), chapter.rule,
        word ? el("span", { class: "badge", "data-standing": "Problem" }, word) : ""),
      el("p", { class: "foreign" }, `This rule ${chapter.text}.`, chapter.since ? " Held since " : "", chapter.since ? this.#time(chapter.since) : "", chapter.since ? "." : ""),
      el("p", { class: "soft foreign" }, `${chapter.taint} · ${chapter.mode}${chapter.anyOf ? " · only one requirement must be met" : ""}`),
      stuck ? el("p", { class: "problem" }, "Held for longer than the rule's progressDeadlineSeconds.") : "",
      chapter.until ? el("p", {}, `If its requirements remain met, the node is released at ${clock(Date.parse(chapter.until))}, `, this.#until(chapter.until), ".") : "",
      chapter.refused ? el("p", { class: "problem foreign" }, `Rejected: ${chapter.refused}`) : "",
      el("ul", { class: "requirements" }, ...(chapter.requirements ?? []).map((requirement) => this.#requirement(requirement))));
  }

  // requirement shows one requirement, and why the node's status counts as Unknown, if this is the case.
  #requirement(r) {
    const said = [r.reason, r.message].filter(Boolean).join(": ");
    const ages = el("p", { class: "soft foreign" });
    if (r.since) ages.append("since ", this.#time(r.since));
    if (r.heartbeat) ages.append(r.since ? " · last heartbeat " : "last heartbeat ", this.#time(r.heartbeat));
    if (r.writer) ages.append(`${r.since || r.heartbeat ? " · " : ""}written by ${r.writer}`);
    const current = r.absent ? `not reported${r.default ? `, counts as ${r.current}` : ""}` : `${r.current}${r.whyUnknown ? ` (${r.whyUnknown})` : ""}`;
    return el("li", { "data-met": String(r.met) },
      el("p", { class: "foreign" }, el("span", { class: "sign", role: "img", "aria-label": r.met ? "met" : "missing" }, r.met ? "✓" : "✗"),
        el("strong", {}, r.type), ` is ${current}${r.met ? "" : `, must be ${r.required}`}`),
      said ? el("p", { class: "quote foreign" }, said) : "", ages.childNodes.length ? ages : "");
  }

  #event(event) {
    return el("li", { class: "foreign" }, el("strong", {}, event.reason), event.count > 1 ? ` (${event.count} times)` : "", " ", this.#time(event.at), el("p", {}, event.note));
  }

  #time(at) {
    return el("time", { datetime: at, title: new Date(at).toLocaleString("en-GB") }, this.#ago(at));
  }

  #until(at) {
    return el("time", { datetime: at, "data-until": true }, this.#left(at));
  }

  #left(at) {
    const seconds = (Date.parse(at) - this.#fleet.now()) / 1000;
    return seconds > 0 ? `in ${duration(seconds)}` : "now";
  }

  #ago(at) {
    return `${duration((this.#fleet.now() - Date.parse(at)) / 1000)} ago`;
  }
}
