// The service's API. Requests wait here while the server is unreachable, busy or requires a token,
// so views get answers and errors only.

import { pause } from "./dom.js";

const TOKEN = "tyrex-token";

/** An error response: a problem document (RFC 9457). */
class Problem extends Error {
  constructor(document, status) {
    super(document.detail ?? document.title ?? `the server answered ${status}`);
    this.title = document.title;
    this.field = document.field;
    this.status = status;
    this.advice = ADVICE[status];
  }
}

const ADVICE = {
  403: "The role of the token does not permit this. Use a token with a higher role: read, explain or admin.",
  413: "The request exceeds a limit of the server. Send less, or raise the limit.",
  500: "This is an error of the server. Its log has the details; please report it.",
};

/** Reasons why requests wait, the most severe first; the most severe one is shown. */
const TROUBLES = ["refused", "token", "gone", "busy"];

/** The state of the server. An event of type `change` reports a new state. */
export const link = new (class extends EventTarget {
  #waiting = new Map();

  /** `up`, or the reason why a request waits. */
  get state() {
    const reasons = new Set(this.#waiting.values());
    return TROUBLES.find((trouble) => reasons.has(trouble)) ?? "up";
  }

  /**
   * @param {object} request
   * @param {string | null} trouble the reason why it waits, or null
   */
  note(request, trouble) {
    const before = this.state;
    if (trouble) this.#waiting.set(request, trouble);
    else this.#waiting.delete(request);
    if (this.state !== before) this.dispatchEvent(new Event("change"));
  }
})();

/** Whether the user has entered a token. */
export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

/** Stores a token for this tab, and resumes the requests that wait for one. */
export function giveToken(token) {
  sessionStorage.setItem(TOKEN, token);
  link.dispatchEvent(new Event("token"));
}

/**
 * @typedef {object} Options
 * @property {unknown} [json] body
 * @property {FormData} [form] body
 * @property {string} [accept] the requested media type
 * @property {AbortSignal} [signal]
 * @property {boolean} [once] not to be sent twice, since it records something
 */

/**
 * Sends a request and waits for its answer.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>} JSON, or text if another type was requested
 */
export async function call(method, path, options = {}) {
  const request = {};
  try {
    const answer = await answered(method, path, options, (trouble) => link.note(request, trouble));
    if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})), answer.status);
    return await (options.accept ? answer.text() : answer.json());
  } finally {
    link.note(request, null);
  }
}

/** Retries a request until a server accepts it. */
async function answered(method, path, { json, form, accept, signal, once }, note) {
  for (let tries = 0; ; tries += 1) {
    const headers = new Headers({ accept: accept ?? "application/json" });
    if (json !== undefined) headers.set("content-type", "application/json");
    if (hasToken()) headers.set("authorization", `Bearer ${sessionStorage.getItem(TOKEN)}`);
    const body = json === undefined ? form : JSON.stringify(json);
    const answer = await fetch(path, { method, headers, body, signal }).catch((error) => {
      if (signal?.aborted) throw error;
      return null;
    });
    if (answer === null) {
      if (once) throw new Error("The server did not respond. Check whether the advice was recorded before you try again.");
      note("gone");
      await pause(Math.min(3000, 250 * 2 ** tries), signal);
    } else if (answer.status === 503 || answer.status === 429) {
      note("busy");
      await pause(1000 * Math.min(30, Number(answer.headers.get("retry-after")) || 1), signal);
    } else if (answer.status === 401) {
      note(hasToken() ? "refused" : "token");
      await tokenGiven(signal);
    } else return answer;
  }
}

/** Waits until there is a token. */
function tokenGiven(signal) {
  return new Promise((resolve, reject) => {
    link.addEventListener("token", resolve, { once: true, signal });
    signal?.addEventListener("abort", () => reject(signal.reason));
  });
}

export const get = (path, options) => call("GET", path, options);
export const post = (path, json, options) => call("POST", path, { json, ...options });

/**
 * Waits for a background job of the server.
 * @param {any} job or an answer that is already available
 * @param {(job: {done: number, total: number}) => void} watch
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>} its result
 */
export async function finished(job, watch, signal) {
  if (!("state" in job)) return job;
  for (;;) {
    const now = await get(`/v1/jobs/${job.id}`, { signal });
    watch(now);
    if (now.state === "done") return get(`/v1/jobs/${job.id}/result`, { signal });
    if (now.state === "failed") throw new Problem(now.problem ?? {}, 500);
    if (now.state === "cancelled") throw new Error("The job was cancelled.");
    await pause(300, signal);
  }
}

/**
 * Sends the latest value, one request at a time: values that arrive during a request replace each
 * other, and the last one is sent as soon as the response has arrived.
 * @template T
 */
export class Latest {
  #send;
  #busy = false;
  /** @type {[T] | null} */
  #waiting = null;

  /** @param {(value: T) => Promise<void>} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {T} value */
  async push(value) {
    this.#waiting = [value];
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#waiting) {
        const [next] = this.#waiting;
        this.#waiting = null;
        await this.#send(next);
      }
    } finally {
      this.#busy = false;
    }
  }
}
