// Charts: the strip of retrained models, cost against survival, intervals.

import { h, replace, svg } from "./dom.js";
import { percent, score } from "./format.js";

/**
 * Positions of dots without overlap. Each dot keeps its position along the axis and moves across
 * it. If there is no space it moves along the axis, away from the line.
 * @param {number[]} xs
 * @param {number} line
 * @param {number} gap between centres
 * @param {number} height
 * @returns {{x: number, y: number}[]} `y` from the middle
 */
function swarm(xs, line, gap, height) {
  const limit = Math.max(0, (height - gap) / 2);
  const placed = [];
  for (const x of xs) {
    const away = x < line ? -1 : 1;
    for (let at = x; ; at += (away * gap) / 4) {
      const near = placed.filter((other) => Math.abs(other.x - at) < gap);
      const taken = near.map((other) => ({ y: other.y, reach: Math.sqrt(gap ** 2 - (other.x - at) ** 2) }));
      const free = (y) => Math.abs(y) <= limit && taken.every((other) => Math.abs(other.y - y) >= other.reach - 1e-6);
      const ys = [0, ...taken.flatMap(({ y, reach }) => [y - reach, y + reach])].filter(free);
      if (ys.length === 0) continue;
      placed.push({ x: at, y: ys.reduce((best, y) => (Math.abs(y) < Math.abs(best) ? y : best)) });
      break;
    }
  }
  return placed;
}

/**
 * The strip: a dot for every retrained model on the axis of scores. Accepting ones are filled
 * circles, rejecting ones open diamonds.
 */
export class Strip {
  #dots = svg("g");
  #today = svg("g", { class: "today" });
  #frame = svg("g");
  #scores = [];
  /** Dots of models that a search uses; they follow the others. */
  #searched = 0;
  #score = null;
  #size = { width: 0, height: 0 };

  constructor() {
    this.root = svg("svg", { class: "strip", role: "img" }, this.#frame, this.#today, this.#dots);
    new ResizeObserver(([{ contentRect: { width, height } }]) => {
      this.#size = { width, height };
      this.#layOut();
    }).observe(this.root);
  }

  /**
   * Moves the dots.
   * @param {number[]} scores of the retrained models
   * @param {number} today the score of the model in use
   * @param {number[]} searched scores of the models that searches use, which do not count
   */
  show(scores, today, searched = []) {
    this.#score = today;
    const accepting = scores.filter((value) => value >= 0.5).length;
    this.root.setAttribute(
      "aria-label",
      `Scores of ${scores.length} retrained models from 0 to 1: ${accepting} at 0.5 or above. The model in use: ${score(today)}.`,
    );
    this.#scores = [...scores, ...searched];
    this.#searched = searched.length;
    const number = this.#scores.length;
    while (this.#dots.childElementCount > number) this.#dots.lastChild.remove();
    while (this.#dots.childElementCount < number) {
      this.#dots.append(svg("g", { class: "dot" }, svg("circle"), svg("path"), svg("title")));
    }
    this.#layOut();
  }

  #layOut() {
    const { width, height } = this.#size;
    if (width === 0) return;
    const [bottom, top] = [height - 24, 18];
    const number = this.#scores.length;
    const radius = Math.max(2, Math.min(5.2, width / 130, 42 / Math.sqrt(number + 1)));
    const gap = 2 * radius + 1;
    // Space for all dots in a pile at either end.
    const pile = Math.min(width / 4, (gap * number) / Math.max(1, Math.floor((bottom - top) / gap)));
    const [left, right] = [10 + pile, width - 10 - pile];
    const at = (value) => left + value * (right - left);
    replace(
      this.#frame,
      svg("rect", { class: "zone", x: at(0.5), y: 0, width: width - at(0.5), height: bottom, rx: 6 }),
      svg("text", { class: "axis", x: 10, y: 13 }, "rejected"),
      svg("text", { class: "axis", x: width - 10, y: 13, "text-anchor": "end" }, "accepted"),
      svg("line", { class: "rule", x1: 0, x2: width, y1: bottom, y2: bottom }),
      [0, 0.25, 0.5, 0.75, 1].map((tick) => [
        svg("line", { class: "rule", x1: at(tick), x2: at(tick), y1: bottom, y2: bottom + 4 }),
        svg("text", { class: "axis", x: at(tick), y: bottom + 17, "text-anchor": "middle" }, tick),
      ]).flat(),
      svg("line", { class: "half", x1: at(0.5), x2: at(0.5), y1: 0, y2: bottom }),
    );
    const middle = (top + bottom) / 2 + 2;
    const places = swarm(this.#scores.map(at), at(0.5), gap, bottom - top - 4);
    [...this.#dots.children].forEach((dot, index) => {
      const value = this.#scores[index];
      const { x, y } = places[index];
      const counts = index < number - this.#searched;
      dot.classList.toggle("accepting", value >= 0.5);
      dot.classList.toggle("searched", !counts);
      dot.style.transform = `translate(${x.toFixed(1)}px, ${(middle + y).toFixed(1)}px)`;
      const [circle, diamond, label] = dot.children;
      circle.setAttribute("r", radius);
      const reach = radius * 1.15;
      diamond.setAttribute("d", `M0 ${-reach}L${reach} 0L0 ${reach}L${-reach} 0Z`);
      label.textContent = `${counts ? `Retrained model ${index + 1}` : "A model that searches use"}: ${score(value)}`;
    });
    if (this.#score === null) return;
    replace(this.#today, svg("line", { y1: 0, y2: top - bottom }), svg("path", { d: "M0 0L6 9H-6Z" }), svg("title", {}, "The model in use"));
    this.#today.style.transform = `translate(${at(this.#score).toFixed(1)}px, ${bottom}px)`;
  }
}

/** The legend of the strip. */
export function stripLegend() {
  const today = svg("g", { class: "today" }, svg("path", { d: "M0 -5L6 5H-6Z" }));
  return h("ul", { class: "legend" }, named("accepts", mark(true)), named("rejects", mark(false)), named("the model in use", today), named("used by searches, does not count", svg("g", { class: "dot accepting searched" }, CIRCLE())));
}

/**
 * @typedef {object} Placed
 * @property {string} name of the method
 * @property {boolean} robust
 * @property {number} cost
 * @property {number} survives
 * @property {string} sentence its advice
 */

/**
 * Cost against survival, a mark for every method. Marks are buttons.
 * @param {Placed[]} methods
 * @param {number} models
 * @param {string} chosen
 * @param {{look: (method: Placed) => void, take: (method: Placed) => void}} on
 * @param {number} width in pixels
 * @param {string} [about] the name of the chart
 */
export function tradeoff(methods, models, chosen, on, width, about = "Methods: cost against survival") {
  const [height, left, right, top, bottom] = [310, 48, 18, 34, 44];
  const most = 1.12 * Math.max(1, ...methods.map(({ cost }) => cost));
  const x = (cost) => left + (cost / most) * (width - left - right);
  const worst = Math.min(...methods.map(({ survives }) => survives / models));
  const [floor, line] = [[0.8, 0.05], [0.5, 0.1]].find(([floor]) => worst > floor + 0.02) ?? [0, 0.25];
  const shares = Array.from({ length: Math.round((1 - floor) / line) + 1 }, (_, index) => floor + index * line);
  const y = (survives) => height - bottom - ((survives / models - floor) / (1 - floor)) * (height - bottom - top);
  const step = [0.5, 1, 2, 5, 10, 20, 50].find((step) => most / step <= 6) ?? most / 5;
  const costs = Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
  const marks = labelled(methods.map((method) => ({ ...method, x: x(method.cost), y: y(method.survives) })), width - 4);
  return svg(
    "svg",
    { class: "tradeoff", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": about },
    shares.map((share) => [
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(share * models), y2: y(share * models) }),
      svg("text", { class: "axis", x: left - 8, y: y(share * models) + 4, "text-anchor": "end" }, percent(share)),
    ]).flat(),
    costs.map((cost) => svg("text", { class: "axis", x: x(cost), y: height - bottom + 18, "text-anchor": "middle" }, cost)),
    svg("text", { class: "axis", x: width - right, y: height - 6, "text-anchor": "end" }, "cost of the change →"),
    svg("text", { class: "axis", x: 0, y: 12 }, "retrained models that accept ↑"),
    marks.map((mark) => {
      const act = () => on.take(mark);
      const key = (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        act();
      };
      const shape = mark.robust
        ? svg("circle", { cx: mark.x, cy: mark.y, r: 7 })
        : svg("rect", { x: mark.x - 6, y: mark.y - 6, width: 12, height: 12 });
      return svg(
        "g",
        {
          class: `mark${mark.robust ? " robust" : ""}${mark.name === chosen ? " chosen" : ""}`,
          role: "button",
          tabindex: 0,
          "aria-pressed": String(mark.name === chosen),
          "aria-label": `${mark.name}: cost ${mark.cost.toFixed(2)}, ${mark.survives} of ${models} retrained models accept`,
          onclick: act,
          onkeydown: key,
          onpointerenter: () => on.look(mark),
          onfocus: () => on.look(mark),
        },
        mark.name === chosen && svg("circle", { class: "ring", cx: mark.x, cy: mark.y, r: 12 }),
        shape,
        svg("text", { x: mark.label.x, y: mark.label.y, "text-anchor": mark.label.anchor }, mark.name),
      );
    }),
  );
}

/** Finds a position for the name of each mark without overlap, if there is one. */
function labelled(marks, width) {
  const boxes = marks.map(({ x, y }) => ({ x0: x - 9, x1: x + 9, y0: y - 9, y1: y + 9 }));
  return marks.map((mark, index) => {
    const length = 7.4 * mark.name.length;
    const lines = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((line) => [[14, 4 + 15 * line, "start"], [-14, 4 + 15 * line, "end"]]);
    const places = [...lines, [0, -14, "middle"], [14, -12, "start"], [-14, -12, "end"]].map(([dx, dy, anchor]) => {
      const [x, y] = [mark.x + dx, mark.y + dy];
      const x0 = x - { start: 0, middle: length / 2, end: length }[anchor];
      return { x, y, anchor, box: { x0, x1: x0 + length, y0: y - 12, y1: y + 4 } };
    });
    const free = ({ box }) =>
      box.x0 > 40 && box.x1 < width && box.y0 > 0 &&
      boxes.every((other, at) => at === index || box.x1 < other.x0 || box.x0 > other.x1 || box.y1 < other.y0 || box.y0 > other.y1);
    const label = places.find(free) ?? places[0];
    boxes.push(label.box);
    return { ...mark, label };
  });
}

const CIRCLE = () => svg("circle", { r: 5 });
const DIAMOND = () => svg("path", { d: "M0 -6L6 0L0 6L-6 0Z" });

/** A mark as on the strip: a filled circle for acceptance, an open diamond for rejection. */
function mark(yes) {
  return svg("g", { class: yes ? "dot accepting" : "dot" }, yes ? CIRCLE() : DIAMOND());
}

/** A mark with a name, as an item of a list. */
function named(text, shape) {
  return h("li", {}, svg("svg", { class: "key", viewBox: "-8 -8 16 16", "aria-hidden": "true" }, shape), text);
}

/**
 * A mark for every promise: kept or broken.
 * @param {{kept: boolean, name: string}[]} promises
 */
export function promiseMarks(promises) {
  const kept = promises.filter((promise) => promise.kept).length;
  return h(
    "div",
    { class: "marks", role: "img", "aria-label": `${kept} of ${promises.length} promises are kept` },
    promises.map((promise) => svg("svg", { class: "key", viewBox: "-8 -8 16 16" }, mark(promise.kept), svg("title", {}, `${promise.name}: ${promise.kept ? "kept" : "broken"}`))),
  );
}

/**
 * A share with its interval, on the axis from 0 to 1.
 * @param {number | null} share
 * @param {[number, number]} interval
 */
export function intervalBar(share, [low, high]) {
  return svg(
    "svg",
    { class: "interval", viewBox: "0 0 120 16", role: "img", "aria-label": `between ${percent(low)} and ${percent(high)}` },
    svg("line", { class: "grid", x1: 4, x2: 116, y1: 8, y2: 8 }),
    svg("line", { class: "span", x1: 4 + 112 * low, x2: 4 + 112 * high, y1: 8, y2: 8 }),
    share !== null && svg("circle", { class: "share", cx: 4 + 112 * share, cy: 8, r: 4.5 }),
  );
}
