// The rules with their standing. Selecting a rule filters the page by that rule.

import { el, mark, number, write } from "./text.js";

export class Rules {
  #fleet;
  #filter;
  #list = document.getElementById("rules");
  #rows = new Map(); // by name: { item, button, drawn }

  constructor(fleet, filter) {
    this.#fleet = fleet;
    this.#filter = filter;
    this.#list.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-rule]");
      if (button) filter.set({ rule: filter.rule === button.dataset.rule ? "" : button.dataset.rule });
    });
    fleet.listen(() => this.#apply());
    filter.listen(() => this.#choose());
  }

  #apply() {
    const rules = [...this.#fleet.rules.values()].sort((a, b) => a.created.localeCompare(b.created) || a.name.localeCompare(b.name));
    for (const [name, row] of this.#rows) {
      if (!this.#fleet.rules.has(name)) {
        row.item.remove();
        this.#rows.delete(name);
      }
    }
    rules.forEach((rule, i) => {
      const row = this.#rows.get(rule.name) ?? this.#add(rule);
      if (this.#list.children[i] !== row.item) this.#list.insertBefore(row.item, this.#list.children[i] ?? null);
      const drawn = JSON.stringify(rule);
      if (row.drawn !== drawn) this.#draw(row, rule);
      row.drawn = drawn;
    });
    document.getElementById("no-rules").hidden = rules.length > 0;
    if (this.#filter.rule && !this.#fleet.rules.has(this.#filter.rule)) this.#filter.set({ rule: "" });
    this.#choose();
  }

  #add(rule) {
    const row = {
      name: el("span", { class: "rule-name foreign" }, rule.name),
      standing: el("span", { class: "badge foreign" }),
      held: el("span", { class: "held-share" }),
      bar: el("span", { class: "share", "aria-hidden": "true" }),
      counts: el("span", { class: "counts" }),
      mode: el("span", { class: "mode" }),
      more: el("span", { class: "more" }),
    };
    row.bar.append(row.held);
    row.button = el("button", { type: "button", class: "rule", "data-rule": rule.name, "aria-pressed": "false" },
      el("span", { class: "line" }, row.name, row.standing), row.bar, el("span", { class: "line" }, row.counts, row.mode), row.more);
    row.item = el("li", {}, row.button);
    this.#rows.set(rule.name, row);
    return row;
  }

  #draw(row, rule) {
    const { stuck, limited } = rule.count;
    write(row.standing, rule.standing);
    mark(row.standing, "data-standing", ["Enforced", "DryRun", "Progressing", "Deleting"].includes(rule.standing) ? rule.standing : "Problem");
    row.held.style.width = `${rule.count.selected ? Math.max(rule.count.held ? 2 : 0, 100 * rule.count.held / rule.count.selected) : 0}%`;
    mark(row.bar, "data-empty", rule.count.selected === 0 ? "" : undefined);
    write(row.mode, rule.mode);
    row.held.hidden = rule.count.held === 0;
    write(row.counts, [`${number(rule.count.held)} held`, stuck ? `${number(stuck)} stuck` : "", `${number(rule.count.released)} released`, limited ? `${number(limited)} limited` : "",
      rule.count.unsettled ? `${number(rule.count.unsettled)} about to change` : ""].filter(Boolean).join(" · "));
    const blocked = Object.entries(rule.count.blocked ?? {}).sort((a, b) => b[1] - a[1]);
    const lines = [
      ["taint", rule.taint.replace(/=[^:]*:/, ":")],
      [rule.anyOf ? "until any of" : "until", rule.requirements.join(", ")],
      ["missing", blocked.map(([type, count]) => `${type} on ${number(count)}`).join(", ")],
      ["blocked", rule.blocked],
      ["other controllers", rule.others],
      ["at creation", rule.atCreation === "PolicyActive" ? "" : [rule.atCreation, rule.atCreationMessage].filter(Boolean).join(": ")],
      ["", rule.standing === "Enforced" ? "" : rule.message],
      ["rejected", (rule.refused ?? []).map((refusal) => `${refusal.node}: ${refusal.message}`).join("; ")],
    ];
    row.more.replaceChildren(...lines.filter(([, text]) => text).map(([label, text]) =>
      el("span", { class: "fact" }, el("span", { class: "label" }, label), el("span", { class: "foreign" }, text))));
  }

  #choose() {
    for (const [name, row] of this.#rows) mark(row.button, "aria-pressed", String(name === this.#filter.rule));
  }
}
