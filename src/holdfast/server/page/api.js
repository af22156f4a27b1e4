// The server's door: one function for every request, one kind of error.

let token = null;

/** What every later request is sent with. */
export function useToken(secret) {
  token = secret;
}

/** The server said no, or could not be reached (status 0). */
class Refused extends Error {
  constructor(status, body, wait = null) {
    super(body.message ?? "The server gave no reason.");
    this.status = status;
    this.kind = body.kind ?? "internal";
    this.parameter = body.parameter ?? null;
    this.hint = body.hint ?? null;
    this.request = body.request ?? null;
    this.wait = wait;
  }
}

const UNREACHABLE = { kind: "unreachable", message: "The server cannot be reached. Nothing is lost: try again." };

/** One request; what comes back is data, or Refused. */
export async function send(method, path, { json, file, type, key, signal, retries = 0 } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await once(method, path, { json, file, type, key, signal });
    } catch (error) {
      if (!(error instanceof Refused) || attempt >= retries || !passing(error)) throw error;
      await pause(error.wait ?? 0.4 * 2 ** attempt, signal);
    }
  }
}

async function once(method, path, { json, file, type, key, signal }) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (key) headers["Idempotency-Key"] = key;
  let body;
  if (json !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(json);
  } else if (file) {
    headers["Content-Type"] = type;
    body = file;
  }
  const asked = { method, headers, body, signal, cache: "no-store", credentials: "omit", redirect: "error" };
  let response;
  try {
    response = await fetch(path, asked);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, UNREACHABLE);
  }
  return read(response);
}

async function read(response) {
  const data = await response.json().catch(() => null);
  if (response.ok) return data;
  const wait = Number(response.headers.get("Retry-After"));
  const body = data?.error ?? { kind: "internal", message: `The server answered ${response.status}.` };
  throw new Refused(response.status, body, Number.isFinite(wait) && wait > 0 ? wait : null);
}

/** Whether the same request may succeed a little later. */
const passing = (error) => error.status === 0 || [429, 502, 503, 504].includes(error.status);

/** Wait so many seconds, or until the request is no longer wanted. */
export function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * Math.min(seconds, 10));
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("no longer wanted", "AbortError"));
    });
  });
}

/** Run the newest request only: what an older one brings is dropped. */
export class Newest {
  #control = null;

  cancel() {
    this.#control?.abort();
    this.#control = null;
  }

  /** The signal for a new request; older ones are cancelled. */
  next() {
    this.cancel();
    this.#control = new AbortController();
    return this.#control.signal;
  }
}

/** A fresh name for a request: 128 bits, good without a secure context too. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Whether an error only says that its request was cancelled here. */
export const isAbort = (error) => error?.name === "AbortError";
