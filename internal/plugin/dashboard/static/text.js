// Texts and elements. Text from the cluster becomes text nodes only: elements created here never contain untrusted
// markup.

const numbers = new Intl.NumberFormat("en");

export const number = (n) => numbers.format(n);

// el creates an element. Props are attributes; false and undefined values are skipped.
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}

// write sets a text only if it differs, to avoid layout.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// mark sets or removes an attribute, if it differs.
export function mark(element, name, value) {
  if (value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

// duration formats seconds as the command line does: 40s, 3m20s, 5h, 12d.
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  if (s < 600) return `${Math.floor(s / 60)}m${s % 60}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

// clock formats a time of day.
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

// Names of states.
export const stateNames = { Held: "held", Released: "released", NotSelected: "not selected" };

// withCommand formats the command at the end of an advice as code.
export function withCommand(text) {
  const at = text.lastIndexOf(": kubectl ");
  return at < 0 ? [text] : [text.slice(0, at + 1), el("code", {}, text.slice(at + 2))];
}

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;
