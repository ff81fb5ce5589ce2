// DOM helpers: the only place that makes elements. Data becomes text, never markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} element
 * @param {Record<string, unknown>} attributes functions become listeners; `false` and `null` are left out
 * @param {Child[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...shown(children));
  return element;
}

/** @param {Child[]} children */
const shown = (children) =>
  children.flat().filter((child) => child !== null && child !== undefined && child !== false);

/**
 * An HTML element.
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Replaces the children.
 * @param {Element} parent
 * @param {...Child} children
 */
export function replace(parent, ...children) {
  parent.replaceChildren(...shown(children));
}

/**
 * Replaces the children of `parent`. A button of the same name keeps the focus.
 * @param {Element} parent
 * @param {...Child} children
 */
export function redraw(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  replace(parent, ...children);
  if (focused) [...parent.querySelectorAll("[role=button]")].find((button) => button.getAttribute("aria-label") === focused)?.focus();
}

/** Announces a text to screen readers. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** A line that shows the current wait. */
export const loading = (text) => h("p", { class: "loading", role: "status" }, text);

/**
 * An error and its remedy.
 * @param {Error} error
 * @param {(() => void)} [again] tries once more
 */
export function failure(error, again) {
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("p", {}, h("strong", {}, error.title ?? "The request failed"), ". ", error.message),
    error.field && h("p", { class: "soft" }, "Check the value of ", h("code", {}, error.field), "."),
    error.advice && h("p", { class: "soft" }, error.advice),
    again && h("button", { type: "button", onclick: again }, "Try again"),
  );
}

/**
 * Downloads a file.
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Waits; rejects early if the signal is aborted. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
