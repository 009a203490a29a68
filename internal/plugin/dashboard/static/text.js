// Texts and elements. Whatever comes from the cluster becomes text nodes only: an element made
// here can never hold markup of somebody else.

const numbers = new Intl.NumberFormat("en");

export const number = (n) => numbers.format(n);

// el makes an element. Props are attributes; false and undefined ones are left out.
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}

// write changes a text only if it differs: what does not change costs no layout.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// mark sets or removes an attribute, if that changes anything.
export function mark(element, name, value) {
  if (value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

// duration says seconds as in 40s, 3m20s, 5h, 12d: as the command line does.
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  if (s < 600) return `${Math.floor(s / 60)}m${s % 60}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

// clock says a time of day.
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

// names of states, as people say them.
export const stateNames = { Held: "held", Released: "released", NotSelected: "not selected" };

// withCommand sets the command at the end of an advice apart.
export function withCommand(text) {
  const at = text.lastIndexOf(": kubectl ");
  return at < 0 ? [text] : [text.slice(0, at + 1), el("code", {}, text.slice(at + 2))];
}

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;
