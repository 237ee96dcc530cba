// Requests to the management API, with the session's cookie and its token against forgery.

export const HUB = new URL(".", location.href.split("#")[0]).href;

export const SILENT = "Warren does not answer. Is it running?";

// `document` is the whole answer, where it is JSON.
export class ApiError extends Error {
	constructor(status, detail, document = null) {
		super(detail);
		this.status = status;
		this.document = document;
	}
}

// Others put here what is called when an answer says that the session is over, after each change that has
// succeeded, and for each request of a page.
export const on = { signedOut() {}, changed() {}, request() {} };
let csrfToken = "";

export function useCsrfToken(token) {
	csrfToken = token;
}

export function path(texts, ...parts) {
	return texts.map((text, at) => text + (at < parts.length ? encodeURIComponent(parts[at]) : "")).join("");
}

export function searchOf(query = {}) {
	const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
	return given.length ? `?${new URLSearchParams(given)}` : "";
}

export function urlOf(where, query) {
	return `${HUB}api${where}${searchOf(query)}`;
}

// Returns the answer as JSON, null for none. Throws `ApiError` with the server's own words.
export async function request(method, where, { query, body, signal, keepalive = false, headers = {} } = {}) {
	// The token's field, even while empty, says that a page asks: else the browser would ask for a password.
	const options = { method, signal, keepalive, headers: { Accept: "application/json", "X-CSRF-Token": csrfToken, ...headers } };
	if (body !== undefined) {
		options.headers["Content-Type"] = "application/json";
		options.body = typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body);
	}
	let answer;
	try {
		answer = await fetch(urlOf(where, query), options);
	} catch (error) {
		if (error.name === "AbortError") throw error;
		throw new ApiError(0, SILENT);
	}
	const text = await answer.text();
	const found = (answer.headers.get("content-type") ?? "").includes("json") && text ? JSON.parse(text) : null;
	if (answer.ok) return found ?? (text || null);
	if (answer.status === 401) on.signedOut();
	const detail = found?.detail ?? found?.reason ?? found?.error ?? text;
	throw new ApiError(answer.status, detail || `The answer was ${answer.status} ${answer.statusText}.`, found);
}

async function change(method, where, options) {
	on.request(method, where, options);
	const found = await request(method, where, options);
	on.changed();
	return found;
}

export function get(where, query, signal) {
	on.request("GET", where, { query });
	return request("GET", where, { query, signal });
}

export const put = (where, body = {}, query) => change("PUT", where, { body, query });
export const post = (where, body = {}, query) => change("POST", where, { body, query });
export const alter = (where, body) => change("PATCH", where, { body });
export const remove = (where, query, headers) => change("DELETE", where, { query, headers });
