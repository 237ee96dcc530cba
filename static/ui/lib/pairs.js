// <warren-pairs>: a field of a form for a table of names and values, such as arguments and headers.

import { button, fill, h, icon } from "./dom.js";

let number = 0;

// `value` is the table as JSON. A value is a text, or JSON where it reads as a number, a truth, a list or a table.
class Pairs extends HTMLElement {
	// `known` are names with what they are: [[name, help], ...], offered while one types.
	begin({ known = [], label }) {
		const id = `known-${(number += 1)}`;
		this.label = label;
		this.rows = h("div", { class: "stack" });
		this.list = h("datalist", { id }, known.map(([name, help]) => h("option", { value: name }, help)));
		fill(this, this.list, this.rows, button([icon("plus"), "Add"], () => this.#add().querySelector("input").focus(), "small"));
		return this;
	}

	connectedCallback() {
		this.closest("form")?.addEventListener("reset", () => fill(this.rows));
	}

	get name() {
		return this.getAttribute("name");
	}

	get value() {
		const pairs = [...this.rows.children].map((row) => [...row.querySelectorAll("input")].map((one) => one.value));
		return JSON.stringify(Object.fromEntries(pairs.filter(([name]) => name !== "").map(([name, text]) => [name, read(text)])));
	}

	set value(json) {
		fill(this.rows);
		Object.entries(typeof json === "string" ? JSON.parse(json || "{}") : json).forEach((pair) => this.#add(...pair));
	}

	#add(name = "", value = "") {
		const field = (what, text, list) => h("input", { "aria-label": `${this.label}: ${what}`, placeholder: what, value: text, list, autocomplete: "off", spellcheck: "false" });
		const row = h("div", { class: "row" }, field("name", name, this.list.id), field("value", written(value)),
			button(icon("close"), () => { row.remove(); this.dispatchEvent(new Event("input", { bubbles: true })); }, "icon", { "aria-label": "Remove" }));
		this.rows.append(row);
		return row;
	}
}

function read(text) {
	try {
		return JSON.parse(text);
	} catch {
		return text; // most values are plain texts
	}
}

// A text that would be read as something else is quoted.
function written(value) {
	return typeof value === "string" && read(value) === value ? value : JSON.stringify(value);
}

customElements.define("warren-pairs", Pairs);

export function pairs(options) {
	return h("warren-pairs", { name: options.name }).begin(options);
}
