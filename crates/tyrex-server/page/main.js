// The frame: tabs, addresses, the colour scheme, the selected model, the state of the server.

import { get, giveToken, link } from "./api.js";
import { applicantView } from "./applicant.js";
import { failure, h, loading, pause, replace } from "./dom.js";
import { count, percent, short } from "./format.js";
import { playgroundView } from "./playground.js";
import { resultsView } from "./results.js";
import { updateView } from "./update.js";

/**
 * The context of every view.
 * @typedef {object} Context
 * @property {any} model the model's detail, kept up to date
 * @property {EventTarget} events `model` when its ensemble has grown
 * @property {(name: string, query?: Record<string, unknown>) => void} go navigates to an address, with a history entry
 * @property {(name: string, query?: Record<string, unknown>) => void} note sets the address of the current view, without a history entry
 */

/**
 * @typedef {object} View
 * @property {(query: URLSearchParams) => void} enter shows the content of an address
 */

/** @type {Record<string, (root: HTMLElement, context: Context) => View>} */
const VIEWS = { applicant: applicantView, update: updateView, playground: playgroundView, results: resultsView };
const NEEDS_MODEL = new Set(["applicant", "update"]);

const address = (name, query = {}) => {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value != null)).toString();
  return `#${name}${text && `?${text}`}`;
};

/** @type {Context} */
const context = {
  model: null,
  events: new EventTarget(),
  go: (name, query) => { location.hash = address(name, query); },
  note: (name, query) => history.replaceState(null, "", address(name, query)),
};

/** @type {Map<string, View>} */
let views = new Map();
const element = (id) => document.getElementById(id);
const panel = (name) => element(`panel-${name}`);

/** Shows the content of the address. */
function route() {
  const [asked, query = ""] = location.hash.slice(1).split("?");
  const name = asked in VIEWS ? asked : "applicant";
  for (const other of Object.keys(VIEWS)) {
    const tab = element(`tab-${other}`);
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    panel(other).hidden = other !== name;
  }
  document.title = `${element(`tab-${name}`).textContent} · tyrex`;
  if (NEEDS_MODEL.has(name) && !context.model) return;
  if (!views.has(name)) views.set(name, VIEWS[name](panel(name), context));
  views.get(name).enter(new URLSearchParams(query));
}

function tabs() {
  const names = Object.keys(VIEWS);
  const all = names.map((name) => element(`tab-${name}`));
  all.forEach((tab, index) => {
    tab.addEventListener("click", () => context.go(names[index]));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = all.at(to % all.length);
      next.focus();
      next.click();
    });
  });
  element("skip").addEventListener("click", () => element("main").focus());
}

/** The button switches between light and dark; the default is the system's setting. */
function theme() {
  const key = "tyrex-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = element("theme");
  const show = () => {
    const chosen = localStorage.getItem(key);
    if (chosen) document.documentElement.dataset.theme = chosen;
    const dark = chosen ? chosen === "dark" : system.matches;
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
    context.events.dispatchEvent(new Event("theme"));
  };
  button.addEventListener("click", () => {
    localStorage.setItem(key, button.textContent.toLowerCase());
    show();
  });
  system.addEventListener("change", show);
  show();
}

/** A line under the header while the server is unreachable, busy or requires a token. */
function watchLink() {
  const line = element("link");
  const tokenForm = (said) => {
    const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const submit = (event) => {
      event.preventDefault();
      giveToken(field.value.trim());
    };
    return h(
      "form",
      { onsubmit: submit },
      h("label", { for: "token" }, said),
      field,
      h("button", { type: "submit" }, "Use it"),
      h("span", { class: "soft" }, "It is stored until this tab is closed. ", h("code", {}, "tyrex token create"), " creates one."),
    );
  };
  const shows = {
    gone: () => "The server does not respond. This page retries automatically; your input is kept.",
    busy: () => "The server is busy. The request is waiting.",
    token: () => tokenForm("This server requires a token."),
    refused: () => tokenForm("The server rejected this token. Enter another one."),
  };
  link.addEventListener("change", () => {
    line.hidden = link.state === "up";
    replace(line, shows[link.state]?.());
  });
}

/** Shows the selected model: the active one, or the chosen one. */
function showModel({ models }) {
  const { model } = context;
  const { ensemble } = model;
  const name = models.length > 1
    ? h(
        "select",
        { "aria-label": "Model", onchange: (event) => start(event.target.value) },
        models.map(({ id }) => h("option", { selected: id === model.id }, id)),
      )
    : h("strong", {}, model.id);
  const retrained = ensemble.state === "training"
    ? `training ${ensemble.models} of ${ensemble.wanted}`
    : `${ensemble.models} retrained`;
  replace(element("model"), name, h("span", { class: "soft" }, retrained));
  const tested = model.performances.find(({ part }) => part === "test") ?? model.performances[0];
  replace(
    element("about"),
    `Model ${model.id}, fingerprint `, h("code", {}, short(model.fingerprint)),
    `: ${count(model.rows)} rows, `,
    tested && quality(tested),
    ensemble.sentence, " ",
    h("a", { href: "openapi.json" }, "API"),
  );
}

/** The performance of the model on labelled rows, in words; nothing without labels. */
function quality({ part, accuracy, auc, calibration_error: error }) {
  if (accuracy === null) return "";
  const ranked = auc === null ? "" : `AUC ${auc.toFixed(3)}, `;
  const calibrated = `calibration error ${error.toFixed(3)}`;
  return `accuracy ${percent(accuracy)}, ${ranked}${calibrated} on the ${part} rows; `;
}

/** Keeps the model's detail up to date while its ensemble is trained. */
async function follow(list, signal) {
  while (context.model.ensemble.state === "training") {
    await pause(400, signal);
    context.model = await get(`/v1/models/${context.model.id}`, { signal });
    showModel(list);
    context.events.dispatchEvent(new Event("model"));
  }
}

const NO_MODEL = () => [
  h("h1", {}, "There is no model yet"),
  h("p", {}, "Start the server with a model: ", h("code", {}, "tyrex serve --dataset german"), ". Or upload an ONNX file and its schema to ", h("code", {}, "/v1/models"), "; then reload."),
  h("button", { type: "button", onclick: () => start() }, "Reload"),
];

let following = new AbortController();

/** Loads a model, by default the active one, and shows the view. */
async function start(id) {
  following.abort();
  following = new AbortController();
  const { signal } = following;
  const places = [...NEEDS_MODEL].map(panel);
  views = new Map();
  context.model = null;
  context.events = new EventTarget();
  for (const place of places) replace(place, loading("Loading the model…"));
  try {
    const list = await get("/v1/models", { signal });
    const chosen = id ?? list.active ?? list.models[0]?.id;
    if (!chosen) {
      for (const place of places) replace(place, ...NO_MODEL());
      route();
      return;
    }
    context.model = await get(`/v1/models/${chosen}`, { signal });
    for (const place of places) replace(place);
    showModel(list);
    route();
    await follow(list, signal);
  } catch (error) {
    if (signal.aborted) return;
    for (const place of places) replace(place, failure(error, () => start(id)));
  }
}

tabs();
theme();
watchLink();
addEventListener("hashchange", route);
route();
start();
