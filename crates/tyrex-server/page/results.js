// The view Results: the reports of experiments, in a frame.

import { call, get, hasToken } from "./api.js";
import { download, failure, h, loading, replace } from "./dom.js";
import { counted } from "./format.js";

/**
 * @param {HTMLElement} root
 * @param {import("./main.js").Context} context
 */
export function resultsView(root, context) {
  const bar = h("div", { class: "chooser" });
  const place = h("div");
  replace(
    root,
    h("h1", {}, "Results of experiments"),
    h("p", { class: "intro" }, "The share of advice that stays valid after retraining, for each method, beside the paper's numbers."),
    bar,
    place,
  );
  let reports = null;

  function show(name) {
    const report = reports.find((other) => other.name === name) ?? reports[0];
    const address = `/v1/results/${encodeURIComponent(report.name)}`;
    const choose = (event) => context.go("results", { report: event.target.value });
    replace(
      bar,
      h("label", { for: "report" }, "Report"),
      h("select", { id: "report", onchange: choose }, reports.map((other) =>
        h("option", { value: other.name, selected: other === report }, other.title))),
      h("span", { class: "soft" }, counted(report.experiments, "experiment")),
      hasToken()
        ? h("button", { type: "button", class: "quiet end", onclick: async () => download(`${report.name}.html`, "text/html", await call("GET", address, { accept: "text/html" })) }, "Save")
        : h("a", { class: "end", href: address, target: "_blank", rel: "noopener" }, "Open in a new tab"),
    );
    replace(place, hasToken()
      ? h("p", { class: "panel" }, "A frame cannot send your token. Save the report and open the file.")
      : h("iframe", { class: "report", src: address, title: report.title }));
  }

  return {
    async enter(query) {
      try {
        if (!reports) {
          replace(place, loading("Loading the reports…"));
          reports = (await get("/v1/results")).results;
        }
        if (reports.length > 0) show(query.get("report"));
        else replace(place, h("p", { class: "panel" }, "There are no reports yet. ", h("code", {}, "tyrex experiment run first-look --out results"), " creates one; then start the server with ", h("code", {}, "--results results"), "."));
      } catch (error) {
        replace(place, failure(error, () => this.enter(query)));
      }
    },
  };
}
