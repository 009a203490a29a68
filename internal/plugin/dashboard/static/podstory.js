// The story of one pod: the same as `kubectl readiness why pod/NAME`.

import { el, withCommand } from "./text.js";

const states = { Waiting: "Held", Open: "Released" }; // the colours of nodes

// tellPod makes elements of the story. The function time makes one of a time that has passed.
export function tellPod(story, time) {
  return [
    el("p", { class: "headline foreign", "data-state": states[story.state] ?? "NotSelected" }, story.headline),
    ...section("What to do", (story.next ?? []).map((text) => el("li", { class: "foreign" }, ...withCommand(text))), "ol"),
    ...(story.chapters ?? []).map((chapter) => gate(chapter, time)),
    ...section("Without its gate", (story.ungated ?? []).map((rule) => el("li", { class: "foreign" }, el("strong", {}, rule.rule), `: ${rule.why}`)), "ul"),
    ...section("Rules that do not select it", (story.passed ?? []).map((rule) => el("li", { class: "foreign" }, el("strong", {}, rule.rule), `: ${rule.why}`)), "ul"),
    ...section("Events", (story.events ?? []).toReversed().map((event) => el("li", { class: "foreign" }, el("strong", {}, event.reason),
      event.count > 1 ? ` (${event.count} times)` : "", " ", time(event.at), el("p", {}, event.note))), "ul"),
    ...section("Could not be seen", (story.unseen ?? []).map((text) => el("li", { class: "foreign" }, text)), "ul"),
    story.latch.state === "None" && !story.chapters?.length ? "" : el("p", { class: "soft foreign" }, `Latch: it ${story.latch.text}`, story.latch.problem ? ` (${story.latch.problem})` : ""),
    el("p", { class: "soft foreign" }, ...agent(story, time)),
    el("p", { class: "soft foreign" }, `Ready is ${story.ready}, created `, time(story.created),
      story.otherGates?.length ? `, closed gates of no rule: ${story.otherGates.join(", ")}` : ""),
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
    el("p", { class: "soft foreign" }, chapter.rules?.length ? `rule ${chapter.rules.join(", ")}` : "of no rule that is there"),
    el("ul", { class: "requirements" }, ...(chapter.components ?? []).map((component) => answer(component, time))));
}

// answer tells what one component says.
function answer(c, time) {
  const sign = { yes: "✓", no: "✗" }[c.says] ?? "?";
  const ages = el("p", { class: "soft foreign" });
  if (c.since) ages.append("since ", time(c.since));
  if (c.writer) ages.append(`${c.since ? " · " : ""}written by ${c.writer}`);
  return el("li", { "data-met": String(c.says === "yes") },
    el("p", { class: "foreign" }, el("span", { class: "sign", role: "img", "aria-label": c.says }, sign), el("strong", {}, c.name), `, ${c.how}${c.why ? `: ${c.why}` : ""}`),
    ages.childNodes.length ? ages : "");
}

function agent(story, time) {
  if (!story.node) return ["Not scheduled yet"];
  if (!story.agent?.known) return [`On node ${story.node}`];
  if (!story.agent.renewed) return [`On node ${story.node}, which has no agent`];
  return [`On node ${story.node}, whose agent ${story.agent.alive ? "lives: it said so " : "is gone: it last said that it lives "}`, time(story.agent.renewed)];
}
