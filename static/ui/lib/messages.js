// Outcomes of what the user did: one polite live region, and none for numbers that tick.

import { button, fill, h, icon } from "./dom.js";

const SHOWN_MS = 6000;
const region = h("div", { class: "messages", role: "status", "aria-live": "polite" });

// Errors are of the page on which they happened.
export function mountMessages() {
	document.body.append(region);
	addEventListener("hashchange", () => region.querySelectorAll(".bad").forEach((one) => one.remove()));
}

function add(kind, text, lasting) {
	const message = h("div", { class: `notice ${kind}` }, h("span", {}, text),
		button(icon("close"), () => message.remove(), "icon", { "aria-label": "Dismiss" }));
	while (region.children.length >= 4) region.firstChild.remove();
	region.append(message);
	if (!lasting) setTimeout(() => message.remove(), SHOWN_MS);
	return message;
}

export function done(text) {
	add("good", text, false);
}

// Shows an error in the server's own words until it is dismissed, or what is returned is removed.
export function report(error) {
	if (error.name === "AbortError") return null;
	if (error.status === undefined) console.error(error);
	return add("bad", error.message, true);
}

export function clearMessages() {
	fill(region);
}
