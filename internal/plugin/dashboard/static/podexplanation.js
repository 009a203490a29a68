// The explanation of one pod: the same as `kubectl readiness why pod/NAME`.

import { el, withCommand } from "./text.js";

const states = { Waiting: "Held", Open: "Released" }; // the colours of nodes

// showPod returns the elements of the explanation. The function time returns the element of a past time.
export function showPod(explanation, time) {
  return [
    el("p", { class: "headline foreign", "data-state": states[explanation.state] ?? "NotSelected" }, explanation.headline),
    ...section("What to do", (explanation.next ?? []).map((text) => el("li", { class: "foreign" }, ...withCommand(text))), "ol"),
    ...(explanation.chapters ?? []).map((chapter) => gate(chapter, time)),
    ...section("Without its gate", (explanation.ungated ?? []).map((rule) => el("li", { class: "foreign" }, el("strong", {}, rule.rule), `: ${rule.why}`)), "ul"),
    ...section("Rules that do not select this pod", (explanation.passed ?? []).map((rule) => el("li", { class: "foreign" }, el("strong", {}, rule.rule), `: ${rule.why}`)), "ul"),
    ...section("Events", (explanation.events ?? []).toReversed().map((event) => el("li", { class: "foreign" }, el("strong", {}, event.reason),
      event.count > 1 ? ` (${event.count} times)` : "", " ", time(event.at), el("p", {}, event.note))), "ul"),
    ...section("Could not be read", (explanation.unseen ?? []).map((text) => el("li", { class: "foreign" }, text)), "ul"),
    explanation.latch.state === "None" && !explanation.chapters?.length ? "" : el("p", { class: "soft foreign" }, `Latch: it ${explanation.latch.text}`, explanation.latch.problem ? ` (${explanation.latch.problem})` : ""),
    el("p", { class: "soft foreign" }, ...agent(explanation, time)),
    el("p", { class: "soft foreign" }, `Ready is ${explanation.ready}, created `, time(explanation.created),
      explanation.otherGates?.length ? `, closed gates that belong to no rule: ${explanation.otherGates.join(", ")}` : ""),
  ].filter(Boolean);
}

function section(heading, items, tag) {
  return items.length ? [el("h3", {}, heading), el(tag, { class: "items" }, ...items)] : [];
}

function gate(chapter, time) {
  const state = chapter.open ? "Released" : "Held";
  return el("section", { class: "chapter", "data-state": state },
    el("h3", { class: "foreign" }, el("span", { class: "mark", "data-state": state, "data-stuck": chapter.late }), chapter.gate,
      chapter.late ? el("span", { class: "badge", "data-standing": "Problem" }, "late") : ""),
    el("p", { class: "foreign" }, `This gate ${chapter.text}.`),
    el("p", { class: "soft foreign" }, chapter.rules?.length ? `rule ${chapter.rules.join(", ")}` : "belongs to no rule"),
    el("ul", { class: "requirements" }, ...(chapter.components ?? []).map((component) => answer(component, time))));
}

// signs and words for the states of a component.
const signs = { yes: ["✓", "ready"], no: ["✗", "missing"] };

// answer shows the state of one component.
function answer(c, time) {
  const [sign, word] = signs[c.says] ?? ["?", "unknown"];
  const ages = el("p", { class: "soft foreign" });
  if (c.since) ages.append("since ", time(c.since));
  if (c.writer) ages.append(`${c.since ? " · " : ""}written by ${c.writer}`);
  return el("li", { "data-met": String(c.says === "yes") },
    el("p", { class: "foreign" }, el("span", { class: "sign", role: "img", "aria-label": word }, sign), el("strong", {}, c.name), `, ${c.how}${c.why ? `: ${c.why}` : ""}`),
    ages.childNodes.length ? ages : "");
}

function agent(explanation, time) {
  if (!explanation.node) return ["Not scheduled yet"];
  if (!explanation.agent?.known) return [`On node ${explanation.node}`];
  if (!explanation.agent.renewed) return [`On node ${explanation.node}, which has no agent`];
  return [`On node ${explanation.node}. Its agent ${explanation.agent.alive ? "is alive: it renewed its Lease " : "is gone: it last renewed its Lease "}`, time(explanation.agent.renewed)];
}
