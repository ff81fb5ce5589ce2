// The view Model update: which promises a new model keeps and breaks, and repairs for the broken
// ones.

import { call, finished, get, post } from "./api.js";
import { intervalBar, promiseMarks } from "./charts.js";
import { announce, download, failure, h, loading, replace } from "./dom.js";
import { counted, percent, score, short, shortDay, title, two } from "./format.js";
import { adviceSentence } from "./words.js";

const TRIAL = 20;
const SHOWN = 50;

/**
 * @param {HTMLElement} root
 * @param {import("./main.js").Context} context
 */
export function updateView(root, context) {
  const { model } = context;
  /** @type {File[]} */
  let files = [];
  /** @type {Map<string, any>} the open promises by name */
  let promises = new Map();
  const ledger = h("div", { class: "stack" });
  const results = h("div", { class: "results" });
  const candidates = candidatePanel(model, (chosen) => { files = chosen; }, check);

  replace(
    root,
    h("h1", {}, "Does a new model keep the promises?"),
    h("p", { class: "intro" }, "Advice is a promise: an applicant who follows it will be accepted. Drop a candidate model here to see which promises it would break."),
    h(
      "div",
      { class: "columns even" },
      h("section", { class: "panel", "aria-labelledby": "ledger-title" }, h("h2", { id: "ledger-title" }, "Promises"), ledger),
      candidates.root,
    ),
    results,
  );

  async function load() {
    replace(ledger, loading("Reading the ledger…"));
    try {
      const [list, verified] = await Promise.all([get("/v1/ledger?status=open&limit=1000"), get("/v1/ledger/verify")]);
      const entries = list.entries.filter(({ kind }) => kind === "promise");
      promises = new Map(entries.map((entry) => [entry.id, entry]));
      replace(ledger, ...(entries.length > 0 ? ledgerList(entries, verified) : emptyLedger(record)));
      candidates.ready(entries.length > 0);
    } catch (error) {
      replace(ledger, failure(error, load));
    }
  }

  /** Records advice for the first rejected applicants, as a demonstration. */
  async function record() {
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Advice recorded" });
    replace(ledger, loading(`Searching for advice for the first ${TRIAL} rejected applicants…`), bar);
    try {
      const { applicants } = await get(`/v1/models/${model.id}/applicants?rejected=true&limit=${TRIAL}`);
      const indices = applicants.map(({ row }) => row);
      const subjects = indices.map((row) => `row-${row}`);
      const job = await post("/v1/explain", { model: model.id, indices, wait: false, record: { subjects, holds_days: 90 } }, { once: true });
      const { recorded } = await finished(job, ({ done, total }) => Object.assign(bar, { max: total, value: done }));
      announce(`${counted(recorded.filter(Boolean).length, "promise")} recorded.`);
      await load();
    } catch (error) {
      replace(ledger, failure(error, load));
    }
  }

  async function check({ by, allow }) {
    replace(results, h("section", { class: "panel" }, loading(`Checking ${counted(promises.size, "promise")} with ${counted(files.length, "model")}…`)));
    const ask = (accept) => {
      const form = new FormData();
      for (const file of files) form.append("model", file, file.name);
      form.append("options", JSON.stringify({ by, allow }));
      return call("POST", "/v1/audit", { form, accept });
    };
    try {
      const report = await finished(await ask(), () => {});
      const actions = h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: async () => download("audit.html", "text/html", await ask("text/html")) }, "Save the report as HTML"),
        h("button", { type: "button", onclick: () => download("audit.json", "application/json", JSON.stringify(report, null, 2)) }, "JSON"),
      );
      replace(results, reportPanel(report, promises, actions));
      announce(report.verdict.sentence);
    } catch (error) {
      replace(results, failure(error, () => check({ by, allow })));
    }
  }

  return { enter: load };
}

/** How promises get into the ledger, and a demonstration. */
function emptyLedger(record) {
  return [
    h("p", { class: "lead" }, "There are no promises yet."),
    h("p", {}, "Promises are recorded by “Give this advice” in the view Applicant, by ", h("code", {}, "tyrex explain --ledger"), " and by ", h("code", {}, "/v1/explain"), "."),
    h("button", { type: "button", class: "primary", onclick: record }, `Record advice for the first ${TRIAL} rejected applicants`),
  ];
}

function ledgerList(entries, verified) {
  const row = (entry) => h(
    "tr",
    {},
    h("th", { scope: "row", class: "nowrap" }, entry.subject),
    h("td", {}, adviceSentence(entry)),
    h("td", { class: "nowrap" }, entry.holds_until ? shortDay(entry.holds_until) : "no end"),
  );
  return [
    h("p", { class: "lead" }, `${counted(entries.length, "open promise")}.`),
    verified.problem
      ? h("p", { class: "no" }, `The ledger is damaged: ${verified.problem.sentence}`)
      : h("p", { class: "soft" }, `No entry was edited, removed or reordered: the chain of ${counted(verified.entries, "entry", "entries")} is intact. Its head is `, h("code", {}, short(verified.head)), "."),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Open promises" },
      table(["Subject", "Promise", "Valid until"], entries.slice(0, SHOWN).map(row))),
    entries.length > SHOWN && h("p", { class: "soft" }, `The first ${SHOWN} are shown.`),
  ];
}

const table = (names, rows) =>
  h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows));

/**
 * The drop zone for model files, and the options of the groups.
 * @param {any} model
 * @param {(files: File[]) => void} chosen
 * @param {(options: {by: string[], allow: number}) => void} check
 */
function candidatePanel(model, chosen, check) {
  /** @type {File[]} */
  let files = [];
  let promised = false;
  const by = new Set();
  const list = h("ul", { class: "files" });
  const picker = h("input", { type: "file", id: "files", accept: ".onnx,.ubj,.json,.txt", multiple: true, onchange: () => add([...picker.files]) });
  const allow = h("input", { type: "number", id: "allow", min: 0, max: 100, step: 0.1, value: 0 });
  const button = h("button", { type: "submit", class: "primary", disabled: true }, "Check the promises");
  const why = h("p", { class: "soft" });
  const zone = h(
    "div",
    { class: "zone", ondragover: over, ondragenter: over, ondragleave: () => zone.classList.remove("over"), ondrop: drop },
    h("p", {}, h("strong", {}, "Drop ONNX files here"), " or ", h("label", { for: "files", class: "pick" }, "choose files"), picker),
    h("p", { class: "soft" }, "Several models are compared. To create one: ", h("code", {}, "tyrex train --dataset german --seed 1 --out next.onnx"), "."),
  );

  function over(event) {
    event.preventDefault();
    zone.classList.add("over");
  }

  function drop(event) {
    event.preventDefault();
    zone.classList.remove("over");
    add([...event.dataTransfer.files]);
  }

  function add(more) {
    const names = new Set(more.map(({ name }) => name));
    files = files.filter(({ name }) => !names.has(name)).concat(more);
    picker.value = "";
    show();
  }

  function show() {
    chosen(files);
    const remove = (file) => () => {
      files = files.filter((other) => other !== file);
      show();
    };
    replace(list, files.map((file) => h(
      "li",
      {},
      h("span", {}, file.name),
      h("span", { class: "soft" }, `${Math.ceil(file.size / 1000)} kB`),
      h("button", { type: "button", class: "quiet", "aria-label": `Remove ${file.name}`, onclick: remove(file) }, "Remove"),
    )));
    button.disabled = files.length === 0 || !promised;
    replace(why, !promised ? "Record a promise first." : files.length === 0 && "Choose a model first.");
  }

  const group = ({ name }) => h(
    "label",
    { class: "chip" },
    h("input", { type: "checkbox", onchange: (event) => (event.target.checked ? by.add(name) : by.delete(name)) }),
    title(name),
  );
  const submit = (event) => {
    event.preventDefault();
    check({ by: [...by], allow: (allow.valueAsNumber || 0) / 100 });
  };
  show();
  return {
    root: h(
      "section",
      { class: "panel", "aria-labelledby": "candidates-title" },
      h("h2", { id: "candidates-title" }, "Candidates"),
      h(
        "form",
        { onsubmit: submit },
        zone,
        list,
        h("details", {}, h("summary", {}, "Compare groups"), h("p", { class: "soft" }, "Compares the share of kept promises between groups."), h("div", { class: "chips" }, model.features.map(group))),
        h("div", { class: "inline" }, h("label", {}, "Broken promises allowed, %", allow), button),
        why,
      ),
    ),
    ready(some) {
      promised = some;
      show();
    },
  };
}

/**
 * The report of the gate: the ranking, and the promises under each candidate.
 * @param {any} report
 * @param {Map<string, any>} promises the open promises by name
 * @param {HTMLElement} actions
 */
function reportPanel(report, promises, actions) {
  const ranked = report.candidates.toSorted((a, b) => a.rank - b.rank);
  const detail = h("div");
  const look = (candidate) => {
    replace(detail, candidateDetail(candidate, promises));
    for (const button of rows.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === candidate.name));
  };
  const row = (candidate) => {
    const { tally } = candidate;
    return h(
      "tr",
      {},
      h("td", {}, candidate.rank),
      h("th", { scope: "row" }, h("button", { type: "button", class: "quiet", value: candidate.name, "aria-pressed": "false", onclick: () => look(candidate) }, candidate.name), h("small", {}, ` ${short(candidate.fingerprint)}`)),
      h("td", {}, `${tally.kept} of ${tally.promises}`),
      h("td", {}, tally.share_kept === null ? "–" : intervalBar(tally.share_kept, tally.interval), h("small", {}, ` ${percent(tally.interval[0])} to ${percent(tally.interval[1])}`)),
      h("td", {}, candidate.from_promised?.mean_l1 == null ? "–" : two(candidate.from_promised.mean_l1)),
      h("td", {}, h("span", { class: "verdict-word", "data-verdict": candidate.passes ? "certified" : "vacuous" }, candidate.passes ? "passes" : "fails")),
    );
  };
  const rows = table(["", "Candidate", "Kept", `Share kept, ${percent(report.confidence)} interval`, "Mean cost of a repair", "Gate"], ranked.map(row));
  const panel = h(
    "section",
    { class: "panel", "aria-labelledby": "report-title" },
    h("h2", { id: "report-title" }, "Result"),
    h("p", { class: "lead" }, report.verdict.sentence),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ranking" }, rows),
    actions,
    detail,
  );
  look(ranked[0]);
  return panel;
}

/** The groups and the broken promises of one candidate. */
function candidateDetail(candidate, promises) {
  const who = ({ name }) => promises.get(name)?.subject ?? name;
  const broken = candidate.promises.filter(({ status }) => status !== "kept");
  return h(
    "div",
    { class: "stack" },
    h("h3", {}, `${candidate.name}: every promise`),
    promiseMarks(candidate.promises.map((promise) => ({ kept: promise.status === "kept", name: who(promise) }))),
    candidate.groups.length > 0 && h("div", { class: "groups" }, candidate.groups.map(groupTable)),
    broken.length === 0
      ? h("p", {}, "Every promise is kept.")
      : [
          h("p", {}, `${counted(broken.length, "promise is", "promises are")} broken. A repair lists the changes needed in addition.`),
          h("ul", { class: "broken" }, broken.slice(0, SHOWN).map((promise) => brokenPromise(promise, promises.get(promise.name)))),
          broken.length > SHOWN && h("p", { class: "soft" }, `The first ${SHOWN} are shown; the report has all.`),
        ].filter(Boolean),
  );
}

function groupTable({ feature, groups }) {
  return table([title(feature), "Kept", "Share kept"], groups.map(({ name, tally, differs }) => h(
    "tr",
    {},
    h("th", { scope: "row" }, String(name), differs && h("span", { class: "standing", title: "The difference is statistically significant" }, "differs")),
    h("td", {}, `${tally.kept} of ${tally.promises}`),
    h("td", {}, tally.share_kept === null ? "–" : intervalBar(tally.share_kept, tally.interval)),
  )));
}

/** A broken promise, and its repairs. */
function brokenPromise(promise, entry) {
  const repair = (who, repair) => repair && h("li", {}, h("strong", {}, who), ": ", repair.status === "found"
    ? `${adviceSentence(repair)}${repair.cost ? ` Cost ${two(repair.cost.l1)}.` : ""}`
    : repair.sentence);
  return h(
    "li",
    {},
    h("p", {}, h("strong", {}, entry?.subject ?? promise.name), promise.status === "broken" ? ` now scores ${score(promise.score)}.` : ` cannot be read: ${promise.reason}`),
    entry && h("p", { class: "soft" }, `Promised: ${adviceSentence(entry)}`),
    promise.repairs && h(
      "ul",
      {},
      repair("If the advice was followed", promise.repairs.from_promised),
      repair("If it was not followed yet", promise.repairs.from_factual),
    ),
  );
}
