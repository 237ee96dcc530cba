// A command that can be copied, and buttons that copy.

import { button, h, icon } from "./dom.js";
import { done, report } from "./messages.js";

export function copyButton(text, label = "Copy") {
	return button([icon("copy"), label], async () => {
		try {
			await navigator.clipboard.writeText(text());
			done("Copied.");
		} catch {
			report(new Error("The browser does not permit copying here. Select the text and copy it."));
		}
	}, "small");
}

// `set` of the element changes its text.
export function command(text = "") {
	const shown = h("pre", { tabindex: "0" }, text);
	const element = h("div", { class: "command" }, shown, copyButton(() => shown.textContent));
	return Object.assign(element, { set(now) { shown.textContent = now; } });
}

export function quoted(text) {
	return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
