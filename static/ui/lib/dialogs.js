// Dialogs: confirmation that names the act and its object, and forms in a dialog.

import { remove } from "./api.js";
import { button, fill, h } from "./dom.js";
import { form } from "./forms.js";
import { done, report } from "./messages.js";
import { buttons, stack } from "./view.js";

let number = 0;

// Opens a dialog with what `draw(close)` returns; the promise has what `close` was called with.
export function open(title, draw, { wide = false } = {}) {
	return new Promise((resolve) => {
		const id = `dialog-${(number += 1)}`;
		const dialog = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": id });
		const close = (value) => { dialog.returnValue = ""; resolve(value); dialog.close(); };
		dialog.addEventListener("close", () => { resolve(undefined); dialog.remove(); });
		addEventListener("hashchange", () => dialog.close(), { once: true });
		fill(dialog, h("div", {}, h("h2", { id }, title), draw(close)));
		document.body.append(dialog);
		dialog.showModal();
	});
}

export function closing(close, text = "Close") {
	return buttons(button(text, () => close(true), "main"));
}

// Asks before an act that can't be undone. `act` is the button's words, verb and object, as in
// "Purge 1,204 messages from orders"; `typed` is a name that has to be typed for a deletion. A `safe`
// act only asks because it is large.
export function confirm({ title, text, act, typed, safe = false }) {
	return open(title ?? `${act}?`, (close) => {
		const send = h("button", { class: safe ? "main" : "danger main", type: "submit", disabled: typed !== undefined }, act);
		const compare = (event) => { send.disabled = event.target.value !== typed; };
		const field = typed !== undefined && h("label", { class: "field" }, h("span", {}, "Type ", h("code", {}, typed), " to confirm"),
			h("input", { name: "typed", autocomplete: "off", spellcheck: "false", oninput: compare }));
		return h("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); close(true); } },
			stack(text && h("p", {}, text), field, buttons(button(typed === undefined ? "Cancel" : `Keep ${typed}`, () => close(false)), send)));
	});
}

// Confirms, does it, and says so; then goes `to` another page, if it is given. Returns whether it was done.
export async function act({ to, ...question }, perform, outcome) {
	if (!(await confirm(question))) return false;
	return attempt(async () => {
		const result = await perform();
		done(typeof outcome === "function" ? outcome(result) : outcome);
		if (to) location.hash = to;
	});
}

// A button that deletes, ends or revokes what is at a path, after a question. `more` is {text, typed, to} of the
// question, `kind` of the button, and the `query` of the request.
export function dropButton(verb, what, where, { kind = "danger small", query, ...more } = {}) {
	return button(verb, () => act({ act: `${verb} ${what}`, ...more }, () => remove(where, query), `${verb.replace(/e$/, "")}ed ${what}.`), kind, { "aria-label": `${verb} ${what}` });
}

// Does something whose failure is reported. Returns whether it was done.
export async function attempt(perform) {
	try {
		await perform();
		return true;
	} catch (error) {
		report(error);
		return false;
	}
}

// Opens a form in a dialog (see `form`); closes it when `submit` succeeds. Returns what submit did.
export function formDialog(title, options) {
	return open(title, (close) => form({ ...options, cancel: () => close(undefined), submit: async (values) => {
		const result = await options.submit(values);
		close(result ?? true);
	} }), options);
}
