// Forms from a list of fields: each with its label, kept over a reload, errors beside the button.

import { button as plain, fill, h } from "./dom.js";
import { pairs } from "./pairs.js";

const KEPT = "warren-form:";

// Fields are {name, label, type, value, help, options, required, wide, placeholder, when, secret}.
// Types: text, password, number, textarea, select, check, json, and table (names and values, some of them
// `known`). `when(values)` shows a field. An `own` field brings its `element`, and `read()` returns its
// value or throws. `name` of the form keeps what was typed for this tab until it is sent, or longer with
// `keep`. `submit(values)` may throw.
export function form({ name, fields, submit, button = "Save", cancel, danger = false, keep = false }) {
	const key = KEPT + (name ?? "");
	const kept = name ? JSON.parse(sessionStorage.getItem(key) ?? "{}") : {};
	const problem = h("p", { class: "problem wide", role: "alert" });
	const inputs = new Map(fields.map((field) => [field.name, input(field, kept[field.name])]));
	const holders = new Map(fields.map((field) => [field.name, holder(field, inputs.get(field.name))]));
	const send = h("button", { class: danger ? "danger main" : "main", type: "submit" }, button);
	const element = h("form", { class: "fields", novalidate: true, oninput: changed, onsubmit: sent }, [...holders.values()], problem,
		h("div", { class: "buttons wide" }, cancel && plain("Cancel", cancel), send));

	function values() {
		const shown = fields.filter((field) => !holders.get(field.name).hidden);
		return Object.fromEntries(shown.map((field) => [field.name, valueOf(field, inputs.get(field.name))]));
	}
	function raw() {
		return Object.fromEntries(fields.map((field) => {
			const one = inputs.get(field.name);
			return [field.name, field.type === "check" ? one.checked : one.value];
		}));
	}
	function changed() {
		const now = raw();
		const open = fields.filter((one) => !one.secret && one.type !== "password");
		if (name) keepDraft(key, Object.fromEntries(open.map((one) => [one.name, now[one.name]])));
		fields.forEach((field) => { if (field.when) holders.get(field.name).hidden = !field.when(now); });
	}
	async function sent(event) {
		event.preventDefault();
		fill(problem);
		inputs.forEach((one) => one.removeAttribute("aria-invalid"));
		send.disabled = true;
		try {
			await submit(values(), element);
			if (name && !keep) sessionStorage.removeItem(key);
		} catch (error) {
			if (error.field) {
				inputs.get(error.field).setAttribute("aria-invalid", "true");
				inputs.get(error.field).focus();
			} else if (error.status === undefined) console.error(error);
			fill(problem, error.message);
		} finally {
			send.disabled = false;
		}
	}
	changed();
	return element;
}

// What is larger than the browser keeps for a page is not kept.
function keepDraft(key, values) {
	try {
		sessionStorage.setItem(key, JSON.stringify(values));
	} catch (error) {
		if (error.name !== "QuotaExceededError") throw error;
		sessionStorage.removeItem(key);
	}
}

export class FieldError extends Error {
	constructor(field, message) {
		super(message);
		this.field = field;
	}
}

function input(field, kept) {
	const { name, type = "text", required, placeholder, options, autocomplete = "off" } = field;
	const value = kept ?? field.value ?? "";
	const shared = { name, required, placeholder, autocomplete, spellcheck: "false" };
	if (type === "own") return field.element;
	if (type === "table") return Object.assign(pairs(field), { value });
	if (type === "textarea" || type === "json") return h("textarea", { ...shared, value: typeof value === "string" ? value : JSON.stringify(value, null, 2) });
	if (type === "check") return h("input", { name, type: "checkbox", checked: Boolean(value) });
	if (type === "select") return select(options, value, shared);
	return h("input", { ...shared, type, value, step: type === "number" ? "any" : null });
}

// A list to choose from: options are texts, or [value, text].
export function select(options, value, attributes) {
	const list = h("select", attributes, options.map((one) => [one].flat()).map(([key, text = key]) => h("option", { value: key }, text)));
	if (value !== "" && value !== undefined) list.value = value;
	return list;
}

function holder(field, element) {
	const { type, label, help } = field;
	const wide = field.wide || ["textarea", "json", "table", "own"].includes(type) ? " wide" : "";
	if (type === "check") return h("label", { class: `check${wide}` }, element, label);
	if (type === "own") return h("div", { class: wide }, element);
	const tag = type === "table" ? "fieldset" : "label"; // a label is for one field
	return h(tag, { class: `field${wide}` }, h(type === "table" ? "legend" : "span", {}, label), element, help && h("small", {}, help));
}

function valueOf(field, element) {
	if (field.type === "check") return element.checked;
	if (field.type === "own") return field.read();
	const text = element.value;
	if (field.required && text === "") throw new FieldError(field.name, `${field.label} is missing.`);
	if (field.type === "number") return text === "" ? null : Number(text);
	if (field.type === "table") return JSON.parse(text);
	if (field.type !== "json") return text;
	try {
		return text.trim() === "" ? {} : JSON.parse(text);
	} catch (error) {
		throw new FieldError(field.name, `${field.label} is not JSON: ${error.message}`);
	}
}
