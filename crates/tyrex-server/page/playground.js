// The view Playground: two moons, the differences between retrained models, and the search path of
// each method.

import { Latest, post } from "./api.js";
import { announce, failure, h, loading, replace } from "./dom.js";
import { score, two } from "./format.js";
import { FieldMap } from "./map.js";

const RESOLUTION = 60;
const SHOWN = 4;

/** The methods that require stability. */
const isRobust = (method) => method.startsWith("trex");

/**
 * @param {HTMLElement} root
 * @param {import("./main.js").Context} context
 */
export function playgroundView(root, context) {
  const terms = { samples: 1000, sigma: 0.1, tau: 0.8 };
  /** @type {[number, number] | null} */
  let at = null;
  let lifted = null;
  /** @type {FieldMap[]} */
  let maps = [];
  const trouble = h("div");
  const large = h("div", { class: "maps" });
  const small = h("div", { class: "maps small" });
  const sentence = h("p", { class: "lead" });
  const answers = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Methods" });
  let drawn = null;
  let walked = null;

  const control = (name, label, hint, min, max, step, show, change) => {
    const output = h("output", { for: `play-${name}` }, show(terms[name]));
    const slider = h("input", { type: "range", id: `play-${name}`, min, max, step, value: name === "samples" ? Math.log10(terms[name]) : terms[name] });
    slider.addEventListener("input", () => {
      terms[name] = name === "samples" ? Math.round(10 ** slider.valueAsNumber) : slider.valueAsNumber;
      replace(output, show(terms[name]));
      change();
    });
    return h("div", { class: "term" }, h("label", { for: `play-${name}` }, label), output, slider, h("small", {}, hint));
  };

  replace(
    root,
    h("h1", {}, "Playground: two moons"),
    h("p", { class: "intro" }, "This model has two features, so it can be drawn. Click a map to place an applicant, or use the arrow keys and Enter. Each line is the search path of one method until the model accepts."),
    h(
      "section",
      { class: "panel terms", "aria-label": "Parameters" },
      control("samples", "Neighbours k", "number of points around each point", 1, 3.3, 0.1, String, () => draw()),
      control("sigma", "Width sigma", "standard deviation of the neighbours", 0.02, 0.4, 0.01, two, () => draw()),
      control("tau", "Threshold tau", "the required stability of advice", 0.3, 0.98, 0.01, two, () => walk()),
    ),
    trouble,
    h("section", { class: "panel" }, sentence, large, legend(), h("h2", {}, "Retrained models"), h("p", { class: "soft" }, "The same data, new initial weights. The models disagree near the decision boundary, where cheap advice fails."), small),
    h("section", { class: "panel" }, h("h2", {}, "The methods"), answers),
  );

  const mapping = new Latest(async ({ samples, sigma }) => {
    try {
      drawn = await post("/v1/playground/map", { samples, sigma, resolution: RESOLUTION, shown: SHOWN });
      replace(trouble);
      showMaps();
    } catch (error) {
      replace(trouble, failure(error, draw));
    }
  });

  const walking = new Latest(async ({ at, ...terms }) => {
    try {
      walked = { at, ...(await post("/v1/playground/paths", { at, ...terms })) };
      replace(trouble);
      showPaths();
    } catch (error) {
      replace(trouble, failure(error, walk));
    }
  });

  function draw() {
    mapping.push({ ...terms });
    walk();
  }

  function walk() {
    if (at) walking.push({ at, ...terms });
    for (const map of maps) map.threshold(map.isStability ? terms.tau : 0.5);
  }

  function place(x, y) {
    at = [x, y];
    context.note("playground", { at: at.map(two).join(",") });
    walk();
  }

  function showMaps() {
    const { bounds, width, height, points, maps: fields } = drawn;
    if (maps.length !== fields.length) {
      maps = fields.map((field, index) => new FieldMap(index === fields.length - 1, place));
      replace(large, maps[0].root, maps.at(-1).root);
      replace(small, maps.slice(1, -1).map((map) => map.root));
    }
    maps.forEach((map, index) => {
      map.show(fields[index], { bounds, width, height, points });
      map.threshold(map.isStability ? terms.tau : 0.5);
    });
    if (!at) {
      place(...rejected(drawn));
    } else showPaths();
  }

  function showPaths() {
    if (!walked || !drawn) return;
    for (const map of maps) map.paths(walked.at, walked.paths.map((path) => ({ ...path, robust: isRobust(path.method) })), lifted);
    replace(answers, methodTable(walked, (method) => {
      lifted = method;
      for (const map of maps) map.lift(method);
    }));
    replace(sentence, inWords(walked));
    announce(sentence.textContent);
  }

  context.events.addEventListener("theme", () => maps.forEach((map) => map.repaint()));

  return {
    enter(query) {
      const asked = query.get("at")?.split(",").map(Number);
      if (asked?.length === 2 && asked.every(Number.isFinite)) at = asked;
      if (drawn) walk();
      else {
        replace(trouble, loading("Training the models of the two moons…"));
        draw();
      }
    },
  };
}

/** The distance of the first applicant from the decision boundary, as a share of the map's width. */
const FAR = 0.2;

/** The first applicant: the data point at about that distance from the decision boundary. */
function rejected({ bounds: [left, right, bottom, top], width, height, maps: [base], points }) {
  const accepted = base.values.flatMap((value, index) => {
    const [column, row] = [index % width, Math.floor(index / width)];
    return value < 0.5 ? [] : [[left + (column / (width - 1)) * (right - left), bottom + (row / (height - 1)) * (top - bottom)]];
  });
  const distance = ([x, y]) => Math.min(...accepted.map(([u, v]) => Math.hypot(x - u, y - v)));
  const off = points.map((point) => Math.abs(distance(point) - FAR * (right - left)));
  return points[off.indexOf(Math.min(...off))].slice(0, 2);
}

/** A summary of the map in up to three sentences. */
function inWords({ at, score: value, models, survival, paths }) {
  const place = `At (${at.map(two).join(", ")}) the model `;
  if (value >= 0.5) {
    return `${place}already accepts, with a score of ${score(value)}; ${survival} of ${models} retrained models agree.`;
  }
  const found = paths.filter(({ status }) => status === "found").toSorted((a, b) => a.cost - b.cost);
  if (found.length === 0) return `${place}rejects, with a score of ${score(value)}, and no method finds advice with these parameters.`;
  const [cheapest] = found;
  const says = ({ method, cost, survival }) => `${method} costs ${two(cost)} and ${survival} of ${models} retrained models accept`;
  const surest = found.toSorted((a, b) => b.survival - a.survival || a.cost - b.cost)[0];
  const more = surest === cheapest ? "" : ` ${says(surest)}.`;
  return `${place}rejects, with a score of ${score(value)}. The cheapest: ${says(cheapest)}.${more}`;
}

function methodTable({ paths, models }, look) {
  const row = ({ method, status, reason, cost, survival, stability }) => h(
    "tr",
    { tabindex: 0, onpointerenter: () => look(method), onfocus: () => look(method), onpointerleave: () => look(null), onblur: () => look(null) },
    h("th", { scope: "row" }, method),
    ...(status === "found"
      ? [h("td", {}, two(cost)), h("td", {}, `${survival} of ${models}`), h("td", {}, stability == null ? "–" : two(stability))]
      : [h("td", { colspan: 3, class: "soft" }, `nothing found: ${reason ?? "no advice"}`)]),
  );
  const names = ["Method", "Cost", "Retrained models that accept", "Stability"];
  return h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, paths.map(row)));
}

function legend() {
  const key = (kind, text) => h("li", {}, h("span", { class: `swatch ${kind}` }), text);
  return h(
    "ul",
    { class: "legend" },
    key("high", "accepted, stable"),
    key("low", "rejected, unstable"),
    key("line", "the decision boundary: 0.5, or tau on the stability map"),
    key("solid", "methods that test stability"),
    key("dashed", "methods that do not"),
  );
}
