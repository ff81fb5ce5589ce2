// The panel "What should change?": advice, its cost, its certificate, a comparison of the methods.

import { post } from "./api.js";
import { tradeoff } from "./charts.js";
import { announce, download, failure, h, loading, redraw, replace } from "./dom.js";
import { counted, day, title, two } from "./format.js";
import { changeTable, letter, letterDocument } from "./letter.js";
import { COST, adviceSentence, certificateWords, stabilitySentence, verdictMeaning } from "./words.js";

/** The least p-value of advice that looks like accepted applicants. */
const LEAST_USUAL = 0.1;

/** The promises of the curve. */
const PROMISES = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99];

/** How a choice is certified. */
const checked = "The models retrained to check judge the advice that you select, each further one at a higher confidence.";

/**
 * The question: the applicant, and the locked features.
 * @typedef {{row: number | null, values: Record<string, unknown>, keep: string[]}} Question
 */

/**
 * An answer: `survives` of `models` fresh models accept it if it is certified, and `place` says how
 * the models judge it that choices go by.
 * @typedef {{survives: number, models: number}} Judged
 * @typedef {{method: string, promise?: number, looks: number, document: any, explained: any, survives: number, models: number, place: Judged}} Answer
 */

/**
 * @param {import("./main.js").Context} context
 * @param {{current: () => Question, use: (values: Record<string, unknown>) => void}} on
 */
export function advicePanel(context, on) {
  const { model } = context;
  const { methods } = model;
  const usual = methods[0].name;
  /** The promises of the curve, if the default method has a promise. */
  const promises = model.promise ? PROMISES.filter((promise) => promise <= model.promise.most) : [];
  const body = h("div", { class: "advice" });
  const usualOnly = h("input", { type: "checkbox", id: "usual-only", onchange: () => question && ask() });
  const stale = h("p", { class: "stale", hidden: true }, "The values have changed. ", h("button", { type: "button", class: "quiet", onclick: () => ask() }, "Ask again"));
  const curve = h("div");
  const comparison = h("div");
  /** @type {Question | null} */
  let question = null;
  /** @type {Map<string, Answer>} answers by their method */
  let answers = new Map();
  /** @type {Map<number, Answer>} answers of the default method by their promise */
  let promised = new Map();
  /** @type {Map<string, Answer>} answers that the fresh models have judged, by method and promise */
  let certified = new Map();
  /** Whether choices go by the fresh models, since there are no others. */
  let byFresh = false;
  let chosen = usual;
  let promise = model.promise?.usual;
  let asking = new AbortController();

  const searches = (method) => methods.some(({ name, needs_models }) => name === method && needs_models);
  const bodyOf = (method, certify, promise, looks) => ({
    model: model.id, rows: [question.values], keep: question.keep, method, certify,
    ...(certify ? { looks } : {}),
    ...(searches(method) ? { promise } : {}),
    ...(usualOnly.checked ? { plausible: LEAST_USUAL, path: true } : {}),
  });

  /**
   * One method's answer to the question. The models of the search say where it stands among others;
   * the fresh models judge it only if it is certified, so that no choice goes by them.
   */
  async function answer(method, certify, signal, promise, looks = 0) {
    const document = await post("/v1/explain", bodyOf(method, certify, promise, looks), { signal });
    const [explained] = document.rows;
    const shown = explained.advice.promise;
    const place = { survives: 0, models: 0 };
    if (explained.advice.status === "found" && context.model.ensemble.models > 0) {
      const rows = [explained.advice.counterfactual];
      const survival = await post("/v1/survival", { model: model.id, rows }, { signal });
      const [{ searched = [], survives }] = survival.rows;
      byFresh = searched.length === 0;
      const accepting = searched.filter((score) => score >= 0.5).length;
      Object.assign(place, byFresh ? { survives, models: survival.models } : { survives: accepting, models: searched.length });
    }
    const judged = shown ? { survives: shown.accepting, models: shown.models } : { survives: 0, models: 0 };
    // Without models of the search, and while models are being trained, there is only one count.
    return { method, promise, looks, document, explained, ...(shown || !byFresh ? judged : place), place };
  }

  /**
   * The answers that the fresh models have judged before, so that the confidence is that of all of
   * them; a choice by the fresh models looks at every mark.
   */
  const looksBefore = () => byFresh ? Math.ceil(Math.log2(answers.size + promised.size + 1)) : certified.size;

  /** The models that choices go by, in words. */
  const judges = () => (byFresh ? "retrained to check it" : "of the search");

  /** Asks the default method, shows its advice, then asks the others. */
  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    question = on.current();
    answers = new Map();
    promised = new Map();
    certified = new Map();
    byFresh = false;
    promise = model.promise?.usual;
    stale.hidden = true;
    replace(curve);
    replace(comparison);
    await take(usual, promise, signal);
    for (const other of promises) {
      if (signal.aborted || answers.size === 0) return;
      if (promised.has(other)) continue;
      const result = await answer(usual, false, signal, other).catch(() => null);
      if (signal.aborted) return;
      if (result) promised.set(other, result);
      showCurve();
    }
    for (const { name } of methods) {
      if (signal.aborted || answers.size === 0) return;
      if (answers.has(name)) continue;
      const result = await answer(name, false, signal).catch((error) => ({ method: name, error }));
      if (signal.aborted) return;
      answers.set(name, result);
      compare();
    }
  }

  /** Shows one method's answer as the advice. */
  async function take(method, asked, signal = asking.signal) {
    const before = [...body.children];
    if (answers.size === 0) replace(body, loading("Searching for the cheapest robust change…"));
    else body.classList.add("waiting");
    try {
      const key = `${method} ${asked}`;
      const result = certified.get(key) ?? await answer(method, true, signal, asked, looksBefore());
      if (signal.aborted) return;
      certified.set(key, result);
      answers.set(method, result);
      if (asked) promised.set(asked, result);
      [chosen, promise] = [method, asked];
      show(result);
      showCurve();
      compare();
    } catch (error) {
      if (!signal.aborted) replace(body, failure(error, () => take(method, asked)), ...(answers.size > 0 ? before : []));
    } finally {
      body.classList.remove("waiting");
    }
  }

  /** @param {Answer} answer */
  function show(answer) {
    const { advice } = answer.explained;
    document.querySelector(".letter")?.remove();
    if (advice.status !== "found") {
      replace(body, notFound(advice, question));
      announce(`No advice: ${advice.sentence}.`);
      return;
    }
    const sentence = adviceSentence({ ...advice, sentence: answer.explained.sentence });
    const page = letter(answer, question, model);
    document.body.append(page);
    replace(
      body,
      h("p", { class: "lead" }, sentence),
      h("p", { class: "promise" }, answer.explained.retraining),
      answer.explained.plausibility && h("p", { class: "usual" }, answer.explained.plausibility),
      ...(answer.document.warnings ?? []).map((warning) => h("p", { class: "note" }, warning)),
      changeTable(advice.changes),
      advice.path?.steps.length > 1 && pathList(advice.path),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "primary", onclick: () => on.use(advice.counterfactual) }, "Use these values"),
        h("button", { type: "button", onclick: () => print() }, "Print"),
        h("button", { type: "button", "aria-label": "Save as HTML", onclick: async () => download(fileName(question, "html"), "text/html", await letterDocument(page)) }, "HTML"),
        h("button", { type: "button", "aria-label": "Save as JSON", onclick: () => download(fileName(question, "json"), "application/json", JSON.stringify(answer.document, null, 2)) }, "JSON"),
      ),
      facts(answer),
      certificatePanel(advice.certificate),
      recordForm(answer),
    );
    announce(`Advice by ${answer.method}: ${sentence}`);
  }

  /** The plot of promise against cost: every mark is advice that can be chosen. */
  function showCurve() {
    const found = [...promised].filter(([, { explained }]) => explained.advice.status === "found");
    if (found.length < 2) return;
    const places = found.map(([asked, { explained: { advice, sentence }, place }]) => ({
      name: two(asked), asked, robust: true, cost: advice.cost.l1, ...place,
      sentence: adviceSentence({ ...advice, sentence }),
    }));
    const none = [...promised].filter(([, { explained }]) => explained.advice.status !== "found").map(([asked]) => two(asked));
    const line = h("p", { class: "look" }, "Point at a promise to read its advice; select it to use the advice.");
    const look = ({ name, sentence }) => replace(line, h("strong", {}, `Promise ${name}`), ": ", h("q", {}, sentence));
    redraw(
      curve,
      h("h3", {}, "A higher promise costs more"),
      h("p", { class: "soft" }, `Each mark is advice for the named promise: its cost, and how many of the models ${judges()} accept it. ${checked}`),
      tradeoff(places, places[0].models, chosen === usual ? two(promise) : "", { look, take: ({ asked }) => take(usual, asked) }, Math.max(280, curve.clientWidth), "Promises: cost against survival"),
      line,
      none.length > 0 && h("p", { class: "soft" }, `The search found no advice for a promise of ${none.join(", ")}.`),
    );
  }

  /** The plot of all methods that have answered, and the list of those that found nothing. */
  function compare() {
    const all = methods.map(({ name }) => answers.get(name)).filter(Boolean);
    const found = all.filter(({ explained }) => explained?.advice.status === "found");
    const models = Math.max(0, ...found.map(({ place }) => place.models));
    if (models === 0) return;
    const about = new Map(methods.map((method) => [method.name, method]));
    const places = found.map(({ method, explained: { advice, sentence }, place }) => ({
      name: method, robust: about.get(method).robust, cost: advice.cost.l1, survives: place.survives,
      sentence: adviceSentence({ ...advice, sentence }),
    }));
    const line = h("p", { class: "look" }, "Point at a method to read its advice; select it to use the advice.");
    const look = ({ name, sentence }) => replace(line, h("strong", {}, name), `: ${about.get(name).sentence ?? ""} `, h("q", {}, sentence));
    const none = all.filter((answer) => !found.includes(answer)).map(({ method }) => method);
    const open = methods.length - all.length;
    const own = places.find(({ name }) => name === chosen);
    const better = own && places
      .filter(({ cost, survives }) => cost < own.cost && survives > own.survives)
      .toSorted((a, b) => b.survives - a.survives || a.cost - b.cost)[0];
    redraw(
      comparison,
      h("h3", {}, "Comparison of the methods"),
      h("p", { class: "soft" }, `Higher is more robust, as the models ${judges()} judge, further left is cheaper. Methods with round marks test the stability of their advice, those with square marks do not. ${checked}`),
      tradeoff(places, models, chosen, { look, take: ({ name }) => take(name, searches(name) ? model.promise.usual : undefined) }, Math.max(280, comparison.clientWidth)),
      better && h("p", { class: "note" }, `For this applicant ${better.name} is cheaper and more of the models ${judges()} accept it: ${better.survives} of ${models}, at a cost of ${two(better.cost)}. Consider using it.`),
      line,
      none.length > 0 && h("p", { class: "soft" }, `Nothing found by ${none.join(", ")}.`),
      open > 0 && loading(`${counted(open, "method")} still searching…`),
    );
  }

  /** The button that records advice as a promise. */
  function recordForm({ method, promise, looks }) {
    const said = h("div", { role: "status" });
    const subject = h("input", { id: "subject", required: true, maxlength: 200, autocomplete: "off", value: question.row === null ? null : `row-${question.row}` });
    const days = h("input", { id: "days", type: "number", min: 1, max: 3650, value: 90, required: true });
    const button = h("button", { type: "submit" }, "Give this advice");
    const submit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      replace(said, loading("Recording…"));
      try {
        const record = { subjects: [subject.value.trim()], holds_days: days.valueAsNumber };
        const { recorded } = await post("/v1/explain", { ...bodyOf(method, true, promise, looks), record }, { once: true });
        const until = day(Date.now() + 86_400_000 * days.valueAsNumber);
        replace(said, h("p", {}, `Recorded as promise ${recorded[0]}. It is valid until ${until}. `, h("a", { href: "#update" }, "See all promises")));
      } catch (error) {
        button.disabled = false;
        replace(said, failure(error));
      }
    };
    return h(
      "details",
      { class: "record" },
      h("summary", {}, "Give this advice and record the promise"),
      h("p", { class: "soft" }, "The ledger stores it. Before a new model goes live, Model update shows whether the promise still holds."),
      h(
        "form",
        { class: "inline", onsubmit: submit },
        h("label", {}, "Reference of the person", subject),
        h("label", {}, "Valid for (days)", days),
        button,
      ),
      said,
    );
  }

  function clear() {
    asking.abort();
    question = null;
    answers = new Map();
    promised = new Map();
    certified = new Map();
    stale.hidden = true;
    document.querySelector(".letter")?.remove();
    replace(curve);
    replace(comparison);
    replace(
      body,
      h("p", { class: "soft" }, "tyrex searches for a small change that the model accepts and that retrained models would accept too. Fixed and locked features do not change."),
      h("button", { type: "button", class: "primary large", onclick: () => ask() }, "What should change?"),
    );
  }

  clear();
  return {
    root: h(
      "section",
      { class: "panel", "aria-labelledby": "advice-title" },
      h("h2", { id: "advice-title" }, "What should change?"),
      h(
        "label",
        { class: "chip", title: "About one accepted applicant of ten is less usual than the advice may be. Such advice costs more, takes longer to find, and is found for fewer applicants." },
        usualOnly,
        " Only advice that looks like accepted applicants",
      ),
      stale,
      body,
      curve,
      comparison,
    ),
    clear,
    /** The values have changed: the advice may be outdated. */
    changed(values) {
      if (!question) return;
      const same = (other) => other && Object.keys(other).every((name) => other[name] === values[name]);
      const found = answers.get(chosen)?.explained?.advice.counterfactual;
      stale.hidden = same(question.values) || same(found);
    },
  };
}

const fileName = ({ row }, ending) => `advice-${row === null ? "typed" : `row-${row}`}.${ending}`;

/** The steps to advice, each to a row that looks like accepted applicants. */
function pathList({ steps }) {
  const clauses = ({ changes }) => changes.map(({ words }) => words.clause).join(", ");
  return h(
    "details",
    { class: "path" },
    h("summary", {}, `In ${steps.length} steps, each to a row that looks like accepted applicants`),
    h("ol", {}, ...steps.map((step) => h("li", {}, clauses(step)))),
  );
}

/** Survival, cost and stability in words. */
function facts({ explained: { advice }, survives, models }) {
  const fact = (name, number, words) => h("div", {}, h("dt", {}, name), h("dd", {}, number), h("dd", { class: "words" }, words));
  return h(
    "dl",
    { class: "numbers facts" },
    fact("Survival", models > 0 ? `${survives} of ${models}` : "–", "retrained models would accept it"),
    fact("Cost", two(advice.cost.l1), COST),
    advice.stability !== null && fact("Stability", two(advice.stability), stabilitySentence(advice.stability)),
  );
}

/** The certificate and its assumptions, folded. */
function certificatePanel(certificate) {
  if (!certificate) return h("p", { class: "soft" }, "There is no certificate.");
  const { verdict, claims, assumptions, omitted } = certificateWords(certificate);
  return h(
    "details",
    { class: "certificate" },
    h("summary", {}, "How certain is this? ", h("span", { class: "verdict-word", "data-verdict": verdict, title: verdictMeaning(verdict) }, verdict)),
    h(
      "ul",
      {},
      claims.map(({ title, verdict, sentence }) => h("li", { title: verdictMeaning(verdict) }, h("strong", {}, title), ": ", sentence)),
      omitted.map(({ title, reason }) => h("li", {}, h("strong", {}, title), `: ${reason}`)),
    ),
    assumptions.length > 0 && h("p", { class: "soft" }, "Assumptions:"),
    h("ul", { class: "assumptions" }, assumptions.map(({ sentence, standing, meaning }) =>
      h("li", { "data-standing": standing, title: meaning }, sentence))),
  );
}

/** The reason why there is no advice, and possible remedies. */
function notFound(advice, { keep }) {
  if (advice.reason === "already-favourable") {
    return h("p", { class: "lead" }, "Nothing has to change: the model accepts these values already.");
  }
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "lead" }, "No advice was found."),
    h("p", {}, `Why: ${advice.sentence}.`),
    advice.highest && h("p", {}, advice.highest.sentence),
    advice.apart && h("p", {}, advice.apart.sentence),
    keep.length > 0 && h("p", {}, `Locked now: ${keep.map(title).join(", ")}. Unlock one and ask again.`),
    advice.rules && h("p", { class: "soft" }, `Rules: ${advice.rules}.`),
  );
}
