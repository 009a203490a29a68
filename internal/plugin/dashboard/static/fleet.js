// The fleet: nodes and rules by name, and pods that wait for a gate by namespace and name. The stream updates it.

const keyOf = (pod) => `${pod.namespace}/${pod.name}`;

export class Fleet {
  nodes = new Map();
  rules = new Map();
  pods = new Map();
  podRules = 0; // number of PodReadinessRules
  title = "";
  waiting = undefined; // number of pods without a node; undefined: unknown
  unseen = [];
  cluster = {}; // lost: when the server lost its connection, in milliseconds; problem: the reason
  heard = false; // whether a message has been received
  #skew = 0;
  #listeners = [];

  // now returns the server's time in milliseconds: ages must not depend on this machine's clock.
  now() {
    return Date.now() + this.#skew;
  }

  // listen registers a callback for changes. It receives the names of changed and deleted nodes, and the keys of pods.
  listen(listener) {
    this.#listeners.push(listener);
  }

  // snapshot replaces the whole fleet. Objects that are not in the message are removed.
  snapshot(message) {
    const nodes = new Set((message.nodes ?? []).map((node) => node.name));
    const rules = new Set((message.rules ?? []).map((rule) => rule.name));
    const pods = new Set((message.pods ?? []).map(keyOf));
    this.title = message.title ?? "";
    this.unseen = message.unseen ?? [];
    this.waiting = undefined;
    this.#apply({
      ...message,
      gone: [...this.nodes.keys()].filter((name) => !nodes.has(name)),
      rulesGone: [...this.rules.keys()].filter((name) => !rules.has(name)),
      podsGone: [...this.pods.keys()].filter((key) => !pods.has(key)),
    }, true);
  }

  changes(message) {
    this.#apply(message, false);
  }

  beat(message) {
    this.#skew = message.at - Date.now();
  }

  #apply(message, whole) {
    this.beat(message);
    this.heard = true;
    for (const node of message.nodes ?? []) this.nodes.set(node.name, node);
    for (const name of message.gone ?? []) this.nodes.delete(name);
    for (const rule of message.rules ?? []) this.rules.set(rule.name, rule);
    for (const name of message.rulesGone ?? []) this.rules.delete(name);
    for (const pod of message.pods ?? []) this.pods.set(keyOf(pod), pod);
    for (const key of message.podsGone ?? []) this.pods.delete(key);
    if (message.podRules !== undefined) this.podRules = message.podRules;
    if (message.cluster) this.cluster = message.cluster;
    if (message.waiting !== undefined) this.waiting = message.waiting;
    const change = {
      whole,
      nodes: (message.nodes ?? []).map((node) => node.name),
      gone: message.gone ?? [],
      rules: Boolean(message.rules || message.rulesGone?.length),
      pods: [...(message.pods ?? []).map(keyOf), ...(message.podsGone ?? [])],
      podsChanged: Boolean(message.pods?.length || message.podsGone?.length || message.podRules !== undefined),
    };
    for (const listener of this.#listeners) listener(change);
  }
}
