// The view Applicant: one applicant, the decision, and the live scores of retrained models.

import { advicePanel } from "./advice.js";
import { Latest, get, post } from "./api.js";
import { Strip, stripLegend } from "./charts.js";
import { announce, failure, h, loading, replace } from "./dom.js";
import { bare, count, plain, score, title, two, valued } from "./format.js";
import { survivalSentence } from "./words.js";

/** @typedef {import("./format.js").Feature} Feature */
/** @typedef {import("./main.js").Context} Context */
/** @typedef {Record<string, unknown>} Values */

const PAGE = 50;
const TYPED = "typed";

/**
 * @param {HTMLElement} root
 * @param {Context} context
 */
export function applicantView(root, context) {
  const { model } = context;
  const locks = new Set();
  /** @type {{row: number | null, values: Values} | null} the applicant's original values */
  let origin = null;
  /** @type {string | null} the row asked for last */
  let latest = null;
  /** @type {Values} */
  let values = {};

  const chooser = applicantChooser(context, (row) => context.go("applicant", { row }));
  const decision = decisionPanel(model.methods[0].tau);
  const form = featureForm(model.features, locks, change);
  const advice = advicePanel(context, {
    current: () => ({ row: sameAsOrigin() ? origin.row : null, values: { ...values }, keep: [...locks] }),
    use: (found) => set(found, "The form has the values of the advice."),
  });
  const reset = h("button", { type: "button", class: "quiet", onclick: () => set(origin.values, "The form has the applicant's original values.") }, "Restore the original values");
  const trouble = h("div");

  replace(
    root,
    h("h1", { class: "unseen" }, "Applicant"),
    chooser.root,
    trouble,
    decision.root,
    h(
      "div",
      { class: "columns" },
      h(
        "section",
        { class: "panel", "aria-labelledby": "values-title" },
        h("div", { class: "heading" }, h("h2", { id: "values-title" }, "Values"), reset),
        h("p", { class: "soft" }, "Change a value and watch the dots. Lock the features that must not change."),
        form.root,
      ),
      advice.root,
    ),
  );

  const sameAsOrigin = () => model.features.every(({ name }) => values[name] === origin.values[name]);

  /** The dots: as many requests as the server can answer, always with the latest values. */
  const survival = new Latest(async ({ row, since }) => {
    try {
      const { ensemble } = context.model;
      const answer = await post(ensemble.models > 0 ? "/v1/survival" : "/v1/stability", { model: model.id, rows: [row] });
      replace(trouble);
      decision.survival(answer.rows[0], ensemble);
      requestAnimationFrame(() => measured(since));
    } catch (error) {
      replace(trouble, failure(error));
    }
  });

  const stability = new Latest(async (row) => {
    const answer = await post("/v1/stability", { model: model.id, rows: [row] }).catch(() => null);
    if (answer) decision.stability(answer.rows[0]);
  });

  function judge(since) {
    const row = { ...values };
    survival.push({ row, since });
    stability.push(row);
    reset.hidden = sameAsOrigin();
    advice.changed(row);
  }

  /** The user changed a feature. */
  function change(name, value) {
    values[name] = value;
    judge(performance.now());
  }

  /** All features get new values at once. */
  function set(next, said) {
    values = { ...next };
    form.show(values, origin.values);
    judge(performance.now());
    if (said) announce(said);
  }

  function meet(applicant) {
    origin = { row: applicant.row, values: applicant.features };
    decision.person(applicant);
    advice.clear();
    set(applicant.features);
  }

  context.events.addEventListener("model", () => {
    if (origin) survival.push({ row: { ...values }, since: 0 });
  });

  return {
    async enter(query) {
      const asked = query.get("row");
      if (origin && (asked === null || asked === String(origin.row ?? TYPED))) return;
      try {
        if (!origin) replace(trouble, loading("Loading the applicant…"));
        latest = asked;
        const applicant = await chooser.find(asked);
        if (latest !== asked) return;
        replace(trouble);
        if (!applicant) {
          replace(trouble, h("p", { class: "panel" }, "The model rejects no applicant in its data. Enter an applicant, or select another model."));
          return;
        }
        context.note("applicant", { row: applicant.row ?? TYPED });
        meet(applicant);
      } catch (error) {
        replace(trouble, failure(error, () => this.enter(query)));
      }
    },
  };
}

/** Records the time from a slider's movement to the frame that shows the dots. */
function measured(since) {
  if (!since) return;
  performance.clearMeasures("slider-to-dots");
  performance.measure("slider-to-dots", { start: since });
}

/**
 * A menu of rejected rows, and a form for a new applicant.
 * @param {Context} context
 * @param {(row: number | string) => void} choose
 */
function applicantChooser({ model }, choose) {
  /** @type {{row: number, score: number, features: Values}[]} */
  let known = [];
  let total = 0;
  const menu = h("select", { id: "row", onchange: (event) => picked(event.target.value) });
  const step = (by) => {
    const at = known.findIndex(({ row }) => String(row) === menu.value) + by;
    if (at >= known.length && known.length < total) picked("more");
    else choose(known.at(at % known.length).row);
  };
  const position = h("span", { class: "soft" });

  async function more() {
    const path = `/v1/models/${model.id}/applicants?rejected=true&offset=${known.length}&limit=${PAGE}`;
    const page = await get(path);
    known = known.concat(page.applicants);
    total = page.total;
    replace(position, `${count(total)} rejected`);
  }

  async function picked(value) {
    if (value !== "more") return choose(value);
    const next = known.length;
    await more();
    choose(known[Math.min(next, known.length - 1)].row);
  }

  function list(current) {
    const option = ({ row, score: value }) => h("option", { value: row }, `Row ${row} · score ${score(value)}`);
    const isKnown = current.row === null || known.some(({ row }) => row === current.row);
    replace(
      menu,
      h("option", { value: TYPED }, "Entered by hand"),
      isKnown ? null : option(current),
      known.map(option),
      known.length < total && h("option", { value: "more" }, "More…"),
    );
    menu.value = String(current.row ?? TYPED);
  }

  return {
    root: h(
      "div",
      { class: "chooser" },
      h("label", { for: "row" }, "Applicant"),
      h(
        "span",
        { class: "stepper" },
        h("button", { type: "button", class: "quiet", "aria-label": "Previous applicant", onclick: () => step(-1) }, "‹"),
        menu,
        h("button", { type: "button", class: "quiet", "aria-label": "Next applicant", onclick: () => step(1) }, "›"),
      ),
      position,
      h("button", { type: "button", class: "quiet end", onclick: () => choose(TYPED) }, "Enter an applicant"),
    ),
    /** The applicant of an address: a row, a new one, or the first. */
    async find(asked) {
      if (known.length === 0) await more();
      let found = known[0];
      if (asked === TYPED || (!found && asked === null)) {
        found = { row: null, score: 0, features: typical(model.features, known) };
      } else if (asked !== null) {
        found = known.find(({ row }) => String(row) === asked);
        found ??= (await get(`/v1/models/${model.id}/applicants?row=${encodeURIComponent(asked)}`)).applicants[0];
      }
      if (found) list(found);
      return found;
    },
  };
}

/**
 * Initial values of a new applicant: the median and the most frequent level of the rejected rows.
 * @param {Feature[]} features
 * @param {{features: Values}[]} applicants
 */
function typical(features, applicants) {
  return Object.fromEntries(features.map(({ name, levels, minimum, maximum }) => {
    const seen = applicants.map(({ features }) => features[name]).filter((value) => value != null);
    if (!levels) {
      const sorted = seen.toSorted((a, b) => a - b);
      return [name, sorted[Math.floor(sorted.length / 2)] ?? Math.round((minimum + maximum) / 2)];
    }
    const often = (level) => seen.filter((value) => value === level).length;
    return [name, levels.reduce((best, level) => (often(level) > often(best) ? level : best), levels[0])];
  }));
}

/**
 * Decision, score, stability and the strip of retrained models.
 * @param {number} [tau] the required stability of advice
 */
function decisionPanel(tau) {
  const strip = new Strip();
  const who = h("p", { class: "who" });
  const verdict = h("p", { class: "verdict" }, "…");
  const numbers = h("dl", { class: "numbers" });
  const sentence = h("p", { class: "survives" });
  const progress = h("progress", { hidden: true, "aria-label": "Training of the retrained models" });
  const scored = h("dd");
  const stable = h("dd");
  replace(
    numbers,
    h("div", {}, h("dt", {}, "Score"), scored, h("dd", { class: "words" }, "accepted at 0.50 or more")),
    h("div", { title: "The scores of very similar applicants; measured on random neighbours of this one" }, h("dt", {}, "Stability"), stable, tau && h("dd", { class: "words" }, `advice needs ${two(tau)}`)),
  );
  let spoken = 0;
  return {
    root: h(
      "section",
      { class: "panel hero", "aria-label": "Decision" },
      h("div", { class: "decision" }, who, verdict, numbers),
      h("div", { class: "survival" }, h("div", { class: "heading" }, sentence, stripLegend()), progress, strip.root),
    ),
    person({ row, label }) {
      const known = label == null ? "" : ` · labelled ${label}`;
      replace(who, row === null ? "Entered by hand" : `Row ${row}${known}`);
    },
    survival({ score: today, scores = [], searched = [], survives = 0 }, ensemble) {
      const models = scores.length;
      const accepted = today >= 0.5;
      strip.show(scores, today, searched);
      replace(verdict, accepted ? "Accepted" : "Rejected");
      verdict.dataset.accepted = String(accepted);
      replace(scored, score(today));
      const training = ensemble.state === "training";
      progress.hidden = !training;
      progress.max = ensemble.wanted;
      progress.value = ensemble.models;
      const coming = training ? ` ${ensemble.wanted - ensemble.models} more are being trained.` : "";
      const why = ensemble.state === "none" || ensemble.state === "failed" ? ` ${ensemble.sentence}` : "";
      const text = survivalSentence(survives, models) + coming + why;
      replace(sentence, text);
      // Screen readers announce the result once the slider is at rest.
      clearTimeout(spoken);
      spoken = setTimeout(() => announce(`${verdict.textContent}, score ${score(today)}. ${text}`), 700);
    },
    stability({ relaxed_stability: value }) {
      replace(stable, two(value));
    },
  };
}

/**
 * A control for every feature, in its own units.
 * @param {Feature[]} features
 * @param {Set<string>} locks filled here
 * @param {(name: string, value: unknown) => void} change
 */
function featureForm(features, locks, change) {
  const fields = features.map((feature, position) => featureField(feature, position, locks, change));
  const part = (heading, hint, fixed) => {
    const some = fields.filter((field) => field.fixed === fixed);
    return some.length > 0 &&
      h("fieldset", {}, h("legend", {}, heading, h("small", {}, hint)), some.map((field) => field.root));
  };
  return {
    root: h(
      "form",
      { class: "features", onsubmit: (event) => event.preventDefault() },
      part("Can change", "advice may use these", false),
      part("Fixed", "advice never changes these", true),
    ),
    show(values, own) {
      fields.forEach((field, index) => {
        const { name } = features[index];
        field.show(values[name], own[name]);
      });
    },
  };
}

const RULES = { "only-up": "advice may only raise it", "only-down": "advice may only lower it" };

/**
 * @param {Feature} feature
 * @param {number} position
 * @param {Set<string>} locks
 * @param {(name: string, value: unknown) => void} change
 */
function featureField(feature, position, locks, change) {
  const { name, unit, action, description } = feature;
  const fixed = action === "fixed";
  const id = `feature-${position}`;
  const was = h("span", { class: "was" });
  let own;
  const mark = (value) => replace(was, value !== own && `was ${valued(own, feature)}`);
  const use = (value) => {
    mark(value);
    change(name, value);
  };
  const control = (feature.levels ? levelControl : numberControl)(feature, id, use, (why) => replace(was, why));
  const toggle = ({ currentTarget: button }) => {
    const locked = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(locked));
    if (locked) locks.add(name);
    else locks.delete(name);
    announce(`${title(name)} ${locked ? "is locked" : "may change"}.`);
  };
  const lock = fixed
    ? h("span", { class: "lock", "aria-hidden": "true" })
    : h("button", { type: "button", class: "lock", "aria-pressed": "false", "aria-label": `Lock ${title(name)}`, title: "Lock: advice must not change it", onclick: toggle });
  const hint = [description !== plain(name) && description, RULES[action]].filter(Boolean).join("; ");
  return {
    fixed,
    root: h(
      "div",
      { class: "feature" },
      h("div", { class: "name" }, h("label", { for: id }, title(name)), hint && h("small", { id: `${id}-hint` }, hint)),
      h("div", { class: "control" }, control.elements, unit && h("span", { class: "unit" }, unit), was),
      lock,
    ),
    show(value, before) {
      own = before;
      control.show(value);
      mark(value);
    },
  };
}

/**
 * A slider and a field for numbers; an empty field is a missing value, if the feature allows it. A
 * value that the schema does not allow is not used, and `refuse` is called.
 */
function numberControl({ name, kind, minimum, maximum, step, range, special, missing, description }, id, change, refuse) {
  const [low, high] = [range?.[0] ?? -Infinity, range?.[1] ?? Infinity];
  const unit = step ?? (kind === "integer" ? 1 : "any");
  const field = h("input", { type: "number", id, step: kind === "integer" ? 1 : "any", placeholder: missing && "unknown", "aria-describedby": description && `${id}-hint` });
  const slider = h("input", {
    type: "range", min: minimum, max: maximum,
    step: unit === "any" ? (maximum - minimum) / 1000 : unit,
    "aria-label": `${title(name)}, slider`,
  });
  const move = (from, to) => {
    const value = from.valueAsNumber;
    const allowed = Number.isNaN(value) || (value >= low && value <= high) || special?.includes(value);
    field.setAttribute("aria-invalid", String(!allowed));
    if (!allowed) refuse(`not used: allowed is ${Number.isFinite(low) ? `from ${bare(low)} ` : ""}${Number.isFinite(high) ? `up to ${bare(high)}` : ""}`.trim());
    else if (Number.isFinite(value)) {
      to.value = String(value);
      change(value);
    } else if (missing) change(null);
  };
  slider.addEventListener("input", () => move(slider, field));
  field.addEventListener("input", () => move(field, slider));
  return {
    elements: [slider, field],
    show(value) {
      field.setAttribute("aria-invalid", "false");
      slider.value = field.value = String(value ?? "");
    },
  };
}

/** A menu of levels; a slider too, if they are ordered. */
function levelControl({ name, kind, levels: known, missing, description }, id, change) {
  const levels = missing ? [...known, null] : known;
  const menu = h(
    "select",
    { id, "aria-describedby": description && `${id}-hint` },
    levels.map((level, index) => h("option", { value: index }, bare(level))),
  );
  const slider = kind === "ordinal" &&
    h("input", { type: "range", min: 0, max: levels.length - 1, step: 1, "aria-label": `${title(name)}, slider` });
  const show = (index) => {
    menu.value = String(index);
    if (!slider) return;
    slider.value = String(index);
    slider.setAttribute("aria-valuetext", bare(levels[index]));
  };
  const pick = (event) => {
    const index = Number(event.target.value);
    show(index);
    change(levels[index]);
  };
  menu.addEventListener("change", pick);
  if (slider) slider.addEventListener("input", pick);
  return {
    elements: [slider, menu],
    show: (value) => show(levels.findIndex((level) => String(level) === String(value))),
  };
}
