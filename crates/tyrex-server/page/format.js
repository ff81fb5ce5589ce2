// Formatting of numbers, names, units and times.

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

// `<=` between or before numbers, or the X of "500<=X<1000".
const COMPARISON = /(\w?)\s*(<=|>=|<|>)\s*(?=[\dX])/g;
const SIGNS = { "<=": "≤", ">=": "≥", "<": "<", ">": ">" };

/** @typedef {{name: string, kind: string, unit?: string, levels?: unknown[], minimum?: number, maximum?: number, step?: number, action: string, description?: string}} Feature */

/** `credit_amount` for display: "credit amount". */
export const plain = (name) => name.replaceAll("_", " ").trim() || name;

/** A text at the start of a line. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A name at the start of a line. */
export const title = (name) => capital(plain(name));

/** A text with typographic signs and quotes. */
export const typeset = (text) => text
  .replace(COMPARISON, (_, before, sign) => `${before && `${before} `}${SIGNS[sign]}\u00a0`)
  .replace(/`([^`]*)`/g, "“$1”");

/** A value of a feature, without its unit. */
export function bare(value) {
  if (value === null || value === undefined) return "unknown";
  if (typeof value === "number") return NUMBER.format(value);
  return typeset(String(value));
}

/**
 * A value of a feature, with its unit.
 * @param {unknown} value
 * @param {Feature} [feature]
 */
export const valued = (value, feature) =>
  feature?.unit && typeof value === "number" ? `${bare(value)} ${feature.unit}` : bare(value);

/** A probability with two digits; never rounded to a certainty, nor across 0.5. */
export function score(value) {
  if (value > 0.99 && value < 1) return ">0.99";
  if (value < 0.01 && value > 0) return "<0.01";
  if (value < 0.5 && value >= 0.495) return "0.49";
  return value.toFixed(2);
}

/** A share of some, rounded. */
export const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

/** A number with two decimals. */
export const two = (value) => value.toFixed(2);

/** A whole number with separators. */
export const count = (value) => NUMBER.format(value);

/** "1 promise", "20 promises". */
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A day in words. */
export const day = (time) => DAY.format(new Date(time));

/** The same, short. */
export const shortDay = (time) => SHORT_DAY.format(new Date(time));

/** The start of a fingerprint. */
export const short = (fingerprint) => fingerprint.slice(0, 12);

/** "a, b and c" */
export function listed(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
