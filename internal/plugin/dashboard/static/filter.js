// Selects nodes by text, state and rule. With a rule, the whole page shows the states of that rule.

export class Filter {
  text = "";
  state = "";
  rule = "";
  #listeners = [];

  listen(listener) {
    this.#listeners.push(listener);
  }

  set(change) {
    const before = { text: this.text, state: this.state, rule: this.rule };
    Object.assign(this, change);
    if (before.text === this.text && before.state === this.state && before.rule === this.rule) return;
    for (const listener of this.#listeners) listener(before);
  }

  // stateOf returns the state of a node, for the selected rule if there is one.
  stateOf(node) {
    return this.rule ? node.rules?.[this.rule] ?? "NotSelected" : node.state;
  }

  // sees returns whether the selected rule is among these rules; without a selected rule, whether there are any.
  sees(rules) {
    return Boolean(this.rule ? rules?.includes(this.rule) : rules?.length);
  }

  // words returns "stuck" and "limited", if they apply to the node.
  words(node) {
    return [this.sees(node.stuck) && "stuck", this.sees(node.limited) && "limited"].filter(Boolean);
  }

  matches(node) {
    const state = this.stateOf(node);
    if (this.state ? state !== this.state : this.rule && state === "NotSelected") return false;
    if (!this.text) return true;
    const has = (text) => text.toLowerCase().includes(this.text);
    return has(node.name) || (node.missing ?? []).some(has) || (node.causes ?? []).some(has) || this.words(node).some(has) || Object.keys(node.rules ?? {}).some(has);
  }

  counts(nodes) {
    const counts = { Held: 0, Released: 0, NotSelected: 0 };
    for (const node of nodes) counts[this.stateOf(node)]++;
    return counts;
  }

  // harm counts stuck and limited nodes.
  harm(nodes) {
    const harm = { stuck: 0, limited: 0 };
    for (const node of nodes) {
      if (this.sees(node.stuck)) harm.stuck++;
      if (this.sees(node.limited)) harm.limited++;
    }
    return harm;
  }
}
