// The list of live messages: the newest ones, bounded, each with its headers and its payload.

import { asText, bytes, clock, code, counted, facts, fill, h, notice, payload, stack, state, tag } from "../lib/kit.js";

const KEPT = 200;
const LINE_CHARACTERS = 120;
const KNOWN = new Set(["id", "cursor", "exchange", "routing_key", "headers", "body", "timestamp", "gap", "content_type", "redelivered"]);

// Returns {element, add(message), pause(yes), clear()}; `changed(text)` says how many there are.
export function messageList(changed) {
	const list = h("ol", { class: "messages-live", "aria-label": "Messages, newest first" });
	let waiting = [];
	let dropped = 0;
	let is_paused = false;
	let total = 0;
	let frame = 0;

	// At most one change of the page for each frame, however many messages come.
	function flush() {
		frame = 0;
		if (!is_paused && waiting.length) {
			list.prepend(...waiting.reverse().map(row));
			while (list.children.length > KEPT) list.lastChild.remove();
			waiting = [];
			dropped = 0;
		}
		const held = waiting.length + dropped;
		const more = total > KEPT ? `, the last ${KEPT} are shown` : "";
		changed(is_paused && held ? `${counted(held, "message")} since the pause${dropped ? `, ${dropped} of them not kept` : ""}` : total ? `${counted(total, "message")}${more}` : "");
	}
	function later() {
		frame ||= requestAnimationFrame(flush);
	}
	return {
		element: list,
		add(message) {
			total += 1;
			waiting.push({ ...message, at: Date.now() });
			if (waiting.length > KEPT) { waiting.shift(); dropped += 1; }
			later();
		},
		pause(yes) { is_paused = yes; later(); },
		clear() { waiting = []; total = dropped = 0; fill(list); later(); },
	};
}

function row(message) {
	const details = h("details", { ontoggle: () => { if (details.open && details.children.length === 1) details.append(inside(message)); } },
		h("summary", {}, h("time", { datetime: new Date(message.at).toISOString() }, clock(message.at)), h("code", { class: "key" }, message.routing_key || "(empty key)"),
			h("span", { class: "line" }, beginning(message.body)), h("small", {}, bytes(size(message.body))), message.redelivered && tag("redelivered")));
	const gap = message.gap && notice("warn", state("Gap", "warn"), h("span", {}, `Messages are missing here: what came between ${message.gap.from ?? "the beginning"} and ${message.gap.to ?? "here"} is not kept.`));
	return h("li", {}, details, gap);
}

function inside(message) {
	const { body } = message;
	const shown = typeof body === "string" ? { payload: body } : { payload: btoa(Array.from(body, (one) => String.fromCharCode(one)).join("")), encoding: "base64" };
	const properties = Object.entries(message).filter(([name]) => !KNOWN.has(name) && name !== "at").map(([name, value]) => [name, asText(value)]);
	return stack(facts([["Exchange", message.exchange || "(default)"], ["Content type", message.content_type], ["Timestamp", message.timestamp], ["Id", message.id], ...properties,
		...Object.entries(message.headers ?? {}).map(([name, value]) => [code(name), asText(value)])]), payload(shown));
}

const size = (body) => (typeof body === "string" ? new TextEncoder().encode(body).length : body.length);
const beginning = (body) => (typeof body === "string" ? body.slice(0, LINE_CHARACTERS) : "(binary)");
