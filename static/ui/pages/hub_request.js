// What was sent to a callback and what it answered, side by side.

import { code, h, payload, quiet, quoted, stack, state } from "../lib/kit.js";
import { answerOf } from "./hub_words.js";

const SHOWN_HEADERS = 6;
const WIDE = 640; // on a phone the answer would be far below

export function requestView({ request, request_missing: why }) {
	if (!request) return quiet(why[0].toUpperCase(), why.slice(1), ".");
	const body = request.body_base64 ?? request.body ?? "";
	return stack(h("p", { class: "line" }, h("b", {}, request.method), " ", code(request.url)), headers(pairs(request.headers)),
		body ? payload({ payload: body, encoding: request.body_base64 === undefined || request.body_base64 === null ? "string" : "base64", label: "Request body", size: request.size }) : quiet("The body is empty."),
		request.truncated && quiet("Only the beginning of the body is shown."));
}

export function responseView(attempt) {
	const { response, response_body: body, status } = attempt;
	const kind = status >= 200 && status < 300 ? "good" : "bad";
	const [, ...lines] = (response ?? "").split("\n");
	const found = lines.map((line) => line.split(/:\s*(.*)/s)).filter(([name, value]) => name && value !== undefined).map(([name, value]) => [name, value.trim()]);
	return stack(h("p", {}, state(answerOf(attempt), kind)), headers(found),
		body ? payload({ payload: body, label: "Response body" }) : quiet(status === null ? "Nothing came back." : "The body is empty."));
}

function pairs(found) {
	return Array.isArray(found) ? found : Object.entries(found ?? {});
}

function headers(entries) {
	if (!entries.length) return null;
	const list = h("dl", { class: "headers" }, entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]));
	return entries.length <= SHOWN_HEADERS ? list : h("details", { open: innerWidth > WIDE }, h("summary", {}, `${entries.length} headers`), list);
}

// Returns the request as a line that sends it from here.
export function requestCurl(request) {
	const given = pairs(request.headers).filter(([name]) => !/^(host|content-length|accept-encoding|connection)$/i.test(name));
	const body = request.body_base64 ? ` --data-binary @body.bin` : request.body ? ` \\\n  --data-raw ${quoted(request.body)}` : "";
	return `curl -X ${request.method} ${quoted(request.url)}${given.map(([name, value]) => ` \\\n  -H ${quoted(`${name}: ${value}`)}`).join("")}${body}`;
}
