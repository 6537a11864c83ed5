// Small helpers to build and update the page. Texts are always inserted as text, never as HTML.

export const $ = (id) => document.getElementById(id);

/** Makes an element: `h("li", { class: "a", on: { click } }, "text", other)`. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (name === "width") {
      element.style.width = value;
    } else if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets a text only where it differs, to avoid needless announcements by screen readers and redraws. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** Makes the children of `parent` match `items`: each is made once, then updated, and removed with its item. */
export function sync(parent, items, { key, make, update }) {
  const known = new Map([...parent.children].filter((it) => it.dataset.key).map((it) => [it.dataset.key, it]));
  let before = null;
  for (const item of items) {
    const name = String(key(item));
    let element = known.get(name);
    if (!element) {
      element = make(item);
      element.dataset.key = name;
    }
    known.delete(name);
    update?.(element, item);
    const next = before ? before.nextElementSibling : parent.querySelector(":scope > [data-key]");
    if (next !== element) {
      if (before) before.after(element);
      else parent.prepend(element);
    }
    before = element;
  }
  for (const element of known.values()) element.remove();
}

/** Runs `run` every `every` milliseconds while the page is visible, and once now. */
export function whileSeen(every, run) {
  const turn = () => { if (!document.hidden) run(); };
  turn();
  setInterval(turn, every);
  document.addEventListener("visibilitychange", turn);
}

/** Fetches JSON from this node. Returns null on an error; the caller reports it. */
export async function ask(path, options = {}) {
  try {
    const answer = await fetch(path, { signal: AbortSignal.timeout(8000), ...options });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
