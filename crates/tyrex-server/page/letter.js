// The advice as one page for the applicant, for printing and for the HTML file.

import { h } from "./dom.js";
import { day, score, short, title, two, typeset } from "./format.js";
import { COST, adviceSentence, certificateWords, survivalSentence } from "./words.js";

/** The changed features, before and after. */
export function changeTable(changes) {
  return h(
    "table",
    { class: "changes" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Feature"), h("th", { scope: "col" }, "Now"), h("th", { scope: "col" }, "Then"))),
    h(
      "tbody",
      {},
      changes.map(({ feature, words }) =>
        h("tr", {}, h("th", { scope: "row" }, title(feature)), h("td", {}, typeset(words.from)), h("td", { class: "then" }, typeset(words.to)))),
    ),
  );
}

/**
 * @param {import("./advice.js").Answer} answer
 * @param {import("./advice.js").Question} question
 * @param {any} model
 */
export function letter({ method, document: made, explained, survives, models }, { row, keep }, model) {
  const { advice } = explained;
  const { claims, assumptions } = advice.certificate ? certificateWords(advice.certificate) : { claims: [], assumptions: [] };
  const fact = (name, ...words) => h("div", {}, h("dt", {}, name), h("dd", {}, ...words));
  return h(
    "article",
    { class: "letter" },
    h("p", { class: "kicker" }, row === null ? "Advice" : `Advice for the applicant in row ${row}`, ` · ${day(Date.now())}`),
    h("h1", {}, "Changes that lead to acceptance"),
    h("p", {}, `Today the model rejects this application, with a score of ${score(explained.score)}; it accepts at 0.50 or more. With these changes it scores ${score(advice.score)}.`),
    h("p", { class: "lead" }, adviceSentence({ ...advice, sentence: explained.sentence })),
    changeTable(advice.changes),
    h("h2", {}, "After retraining"),
    h("p", {}, survivalSentence(survives, models), " ", claims[0]?.sentence ?? ""),
    assumptions.length > 0 && h("p", {}, "Assumptions:"),
    h("ul", {}, assumptions.map(({ sentence }) => h("li", {}, sentence))),
    explained.plausibility && h("p", {}, explained.plausibility),
    h("h2", {}, "Details"),
    h(
      "dl",
      {},
      fact("Cost", `${two(advice.cost.l1)}: ${COST}.`),
      advice.stability !== null && fact("Stability", two(advice.stability)),
      keep.length > 0 && fact("Unchanged", keep.map(title).join(", ")),
      fact("Method", method),
      fact("Model", `${model.id}, fingerprint ${short(made.fingerprint ?? model.fingerprint)}`),
    ),
  );
}

/**
 * The letter as a separate file.
 * @param {Element} page
 */
export async function letterDocument(page) {
  const style = await (await fetch("letter.css")).text();
  // Text of the page is escaped by the browser, as in every `outerHTML`.
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Advice</title>
<style>
${style}</style>
</head>
<body>
${page.outerHTML}
</body>
</html>
`;
}
