// A map of a function of two numbers: colours, its boundary, data points, and search paths.

import { h, replace, svg } from "./dom.js";
import { two } from "./format.js";

const SIDE = 300;
const STEP = 0.02;

/** The current colours of the style sheet for the ends and the middle. */
function colours() {
  const probe = h("span", { class: "probe" });
  document.body.append(probe);
  const found = ["low", "mid", "high", "line"].map((name) => {
    probe.className = `probe ${name}`;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  });
  probe.remove();
  return found;
}

/** One map. */
export class FieldMap {
  #canvas = h("canvas", { width: SIDE * 2, height: SIDE * 2, "aria-hidden": "true" });
  #points = svg("g", { class: "points" });
  #ways = svg("g");
  #cross = svg("g", { class: "cross" }, svg("path", { d: "M-9 0H9M0 -9V9" }));
  #caption = h("figcaption");
  #over;
  #field = null;
  #grid = null;
  #level = 0.5;
  #place;
  #cursor = [0.5, 0.5];

  /**
   * @param {boolean} isStability
   * @param {(x: number, y: number) => void} place called on a click or Enter
   */
  constructor(isStability, place) {
    this.isStability = isStability;
    this.#place = place;
    this.#over = svg(
      "svg",
      { viewBox: `0 0 ${SIDE} ${SIDE}`, tabindex: 0, role: "application", onclick: (event) => this.#click(event), onkeydown: (event) => this.#key(event) },
      this.#points, this.#ways, this.#cross,
    );
    this.root = h("figure", { class: "map" }, h("div", { class: "square" }, this.#canvas, this.#over), this.#caption);
  }

  /**
   * @param {{title: string, values: number[]}} field row by row, the first at the bottom
   * @param {{bounds: number[], width: number, height: number, points: [number, number, boolean][]}} grid
   */
  show(field, grid) {
    const first = this.#grid === null;
    this.#field = field;
    this.#grid = grid;
    replace(this.#caption, field.title);
    this.#over.setAttribute("aria-label", `Map: ${field.title}. Arrow keys move the cross, Enter places the applicant.`);
    if (first) {
      replace(this.#points, grid.points.map(([x, y, favourable]) => {
        const [px, py] = this.#pixel([x, y]);
        return favourable
          ? svg("circle", { class: "yes", cx: px, cy: py, r: 1.6 })
          : svg("path", { class: "no", d: `M${px - 1.7} ${py}h3.4M${px} ${py - 1.7}v3.4` });
      }));
      this.#showCursor();
    }
    this.repaint();
  }

  /** The level of the boundary. */
  threshold(level) {
    if (level === this.#level) return;
    this.#level = level;
    this.repaint();
  }

  /** Interpolates colours between the grid's values; the outermost values are on the edges. */
  repaint() {
    if (!this.#field) return;
    const { width, height } = this.#grid;
    const { values } = this.#field;
    const [low, mid, high, line] = colours();
    const side = this.#canvas.width;
    const image = new ImageData(side, side);
    for (let row = 0; row < side; row += 1) {
      const v = ((side - row - 0.5) / side) * (height - 1);
      const below = Math.floor(v);
      for (let column = 0; column < side; column += 1) {
        const u = ((column + 0.5) / side) * (width - 1);
        const left = Math.floor(u);
        const [fu, fv] = [u - left, v - below];
        const index = below * width + left;
        const [a, b, c, d] = [values[index], values[index + 1], values[index + width], values[index + width + 1]];
        const value = (a * (1 - fu) + b * fu) * (1 - fv) + (c * (1 - fu) + d * fu) * fv;
        const slope = Math.hypot((b - a) * (1 - fv) + (d - c) * fv, (c - a) * (1 - fu) + (d - b) * fu) * (width / side);
        // The distance to the boundary, in pixels.
        const edge = Math.max(0, 1 - Math.abs(value - this.#level) / (1.6 * slope + 1e-9) + 0.3);
        const shown = Math.min(1, Math.max(0, value));
        const [from, to, part] = shown < 0.5 ? [low, mid, shown * 2] : [mid, high, shown * 2 - 1];
        const at = 4 * (row * side + column);
        const dark = Math.min(1, edge);
        for (let channel = 0; channel < 3; channel += 1) {
          const colour = from[channel] + (to[channel] - from[channel]) * part;
          image.data[at + channel] = colour + (line[channel] - colour) * dark;
        }
        image.data[at + 3] = 255;
      }
    }
    this.#canvas.getContext("2d").putImageData(image, 0, 0);
  }

  /**
   * The applicant and the search paths from there.
   * @param {[number, number]} at
   * @param {{method: string, status: string, robust: boolean, path: [number, number][]}[]} ways
   * @param {string | null} lifted
   */
  paths(at, ways, lifted) {
    const found = ways.filter(({ status, path }) => status === "found" && path.length > 0);
    const taken = [];
    const start = this.#pixel(at);
    replace(
      this.#ways,
      found.map(({ method, robust, path }) => {
        // A path that leaves the map is drawn as its start and end only.
        const all = path.map((point) => this.#pixel(point));
        const pixels = all.flat().every((at) => at >= 0 && at <= SIDE) ? all : [start, all.at(-1)];
        const [x, y] = pixels.at(-1);
        const line = `M${pixels.map((pixel) => pixel.map((p) => p.toFixed(1)).join(" ")).join("L")}`;
        const label = place(x, y, method, taken);
        return svg(
          "g",
          { class: `way${robust ? " robust" : ""}`, "data-method": method },
          svg("path", { class: "halo", d: line }),
          svg("path", { d: line }),
          robust ? svg("circle", { cx: x, cy: y, r: 3.6 }) : svg("rect", { x: x - 3.2, y: y - 3.2, width: 6.4, height: 6.4 }),
          svg("text", { x: label.x, y: label.y, "text-anchor": label.anchor }, method),
        );
      }),
      svg("circle", { class: "start", cx: start[0], cy: start[1], r: 5 }),
    );
    this.lift(lifted);
  }

  /** Highlights one path. */
  lift(method) {
    for (const way of this.#ways.querySelectorAll(".way")) {
      way.classList.toggle("faint", method !== null && way.dataset.method !== method);
    }
  }

  #pixel([x, y]) {
    const [left, right, bottom, top] = this.#grid.bounds;
    return [((x - left) / (right - left)) * SIDE, SIDE - ((y - bottom) / (top - bottom)) * SIDE];
  }

  #choose([across, up]) {
    const [left, right, bottom, top] = this.#grid.bounds;
    this.#cursor = [across, up];
    this.#showCursor();
    this.#place(left + across * (right - left), bottom + up * (top - bottom));
  }

  #click(event) {
    if (!this.#grid) return;
    const box = this.#over.getBoundingClientRect();
    this.#choose([(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height]);
  }

  #key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!this.#grid || (!move && event.key !== "Enter")) return;
    event.preventDefault();
    if (!move) return this.#choose(this.#cursor);
    const far = event.shiftKey ? 5 * STEP : STEP;
    this.#cursor = this.#cursor.map((part, axis) => Math.min(1, Math.max(0, part + far * move[axis])));
    this.#showCursor();
  }

  #showCursor() {
    const [across, up] = this.#cursor;
    const [left, right, bottom, top] = this.#grid.bounds;
    this.#cross.setAttribute("transform", `translate(${across * SIDE} ${(1 - up) * SIDE})`);
    this.#over.setAttribute("aria-description", `The cross is at ${two(left + across * (right - left))}, ${two(bottom + up * (top - bottom))}.`);
  }
}

/** A position for a name near the end of its path, without overlap. */
function place(x, y, name, taken) {
  const length = 6 * name.length;
  const places = [0, 1, -1, 2, -2, 3, -3, 4, 5].flatMap((line) => [[8, "start"], [-8, "end"]].map(([dx, anchor]) => {
    const x0 = anchor === "start" ? x + dx : x + dx - length;
    return { x: x + dx, y: y + 4 + 12 * line, anchor, x0, x1: x0 + length };
  }));
  const free = (one) =>
    one.x0 > 0 && one.x1 < SIDE && one.y > 10 && one.y < SIDE - 2 &&
    taken.every((other) => one.x1 < other.x0 || one.x0 > other.x1 || Math.abs(one.y - other.y) > 11);
  const chosen = places.find(free) ?? places[0];
  taken.push(chosen);
  return chosen;
}
