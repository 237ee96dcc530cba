// The requests that a page has made, as lines for a shell: whatever a button does, curl does too.

import { on, urlOf } from "./api.js";
import { command, quoted } from "./command.js";
import { h, patch } from "./dom.js";
import { session } from "./session.js";

const SHOWN = 12;
const BODY_CHARACTERS = 2000;
const SECRETS = /^(password|password_hash|secret|token)$/;
const LINES = new Set();
let draw = () => {};

// curl asks for the password; secrets in a body have to be put in.
export function curl(method, where, { query, body, headers } = {}) {
	const verb = method === "GET" ? "" : ` -X ${method}`;
	const fields = Object.entries(headers ?? {}).map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`).join("");
	return `curl -u ${quoted(session.name)}${verb} ${quoted(urlOf(where, query))}${fields}${given(body)}`;
}

function given(body) {
	if (body === undefined) return "";
	const text = JSON.stringify(body, (key, value) => (SECRETS.test(key) && value ? key.toUpperCase() : value));
	const isFile = typeof body === "string" || body instanceof Blob || text.length > BODY_CHARACTERS;
	return ` \\\n  -H 'Content-Type: application/json' -d ${isFile ? "@FILE" : quoted(text)}`;
}

// Records what the page asks from now on; returns a card that shows it.
export function requestsCard() {
	const list = h("div", { class: "stack" });
	const card = h("details", { class: "card", ontoggle: () => draw() }, h("summary", {}, "The same with curl"),
		h("p", { class: "quiet" }, "What this page has asked of the API, the newest first."), list);
	LINES.clear();
	draw = () => { if (card.open) patch(list, [...LINES].reverse().map(command)); };
	return card;
}

on.request = (...asked) => {
	const line = curl(...asked);
	LINES.delete(line);
	LINES.add(line);
	if (LINES.size > SHOWN) LINES.delete(LINES.values().next().value);
	draw();
};
