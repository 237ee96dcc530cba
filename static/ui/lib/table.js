// <warren-table>: a list of the server's, filtered, sorted and cut to pages there.
//
// What is shown stands in the page's address, so that a reload and a copied link show the same. Rows
// are patched by key: none is made anew or moved under a pointer or the keyboard's focus.

import { get } from "./api.js";
import { button, fill, h, icon, patch } from "./dom.js";
import { bytes, count, counted, rate } from "./format.js";
import { chips } from "./chips.js";
import { refresh } from "./refresh.js";
import { address, setQuery } from "./router.js";
import { buttons, headOf, rowOf, time } from "./view.js";

const PAGE_SIZE = 50;
const TYPING_MS = 250;
const CHIP_CHARACTERS = 24;

// Options:
//   noun      what a row is: "queue", or ["entry", "entries"]
//   columns   see `column`
//   source    async (query, signal) => {items, total, filtered, pages}; the query is {page, page_size,
//             name, sort, sort_reverse} and what `filters` add.
//             With `chips`, [[filter, label, entries]], it has quick filters (lib/chips.js).
//             Lists in order of time have {items, next} instead: `next` is the `before` of older ones
//   key       (row) => its identity
//   filters   [{name, label, options: [[value, text]]}] shown as selects; without options as text
//             fields, with `type` or a `placeholder`; with `chip` only as a mark, where one is set; `counted` ones are chips alone; `when(query)` shows it
//   empty     () => what is shown when there is nothing at all; `actions` are buttons at the right
//   search    the label of the search field; null for none.  sort: {by, reverse} to begin with
//   signal    of the page
// Fires `filter` when another part of the list is asked for.
class Table extends HTMLElement {
	begin(options) {
		this.options = { filters: [], actions: [], search: "Filter by name", sort: {}, key: (row) => row.name, ...options };
		this.rows = new Map();
		this.ready = false;
		this.body = h("tbody");
		this.head = h("tr");
		this.note = h("div", { class: "empty" }, "Loading");
		this.pager = h("div", { class: "pager" });
		this.chips = h("div", { class: "groups" });
		this.noun = [options.noun].flat();
		const many = this.many;
		this.table = h("table", {}, h("caption", { class: "unseen" }, many), h("thead", {}, this.head), this.body);
		fill(this, this.chips, this.#tools(),
			h("div", { class: "card flush" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${many}` }, this.table), this.note),
			this.pager);
		this.#header();
		this.reload = refresh((signal, isAsked) => this.#load(signal, isAsked), this.options.signal, this.options.every_s);
		return this;
	}

	get query() {
		const { sort, filters } = this.options;
		const given = address().query;
		const found = { page: "1", page_size: PAGE_SIZE, sort: sort.by, sort_reverse: sort.reverse && "true", name: given.name, before: given.before };
		if (given.sort) Object.assign(found, { sort: given.sort, sort_reverse: given.sort_reverse });
		for (const name of ["page", "page_size"]) if (given[name]) found[name] = given[name];
		for (const { name } of filters) found[name] = given[name];
		return found;
	}

	#set(changes) {
		setQuery({ page: undefined, before: undefined, ...changes });
		this.fields.forEach((one) => { if (one?.name in changes) one.value = changes[one.name] ?? ""; });
		this.#offer();
		this.dispatchEvent(new Event("filter"));
		return this.reload();
	}

	#tools() {
		const { search, filters, actions } = this.options;
		let timer = 0;
		const typed = (name) => (event) => {
			clearTimeout(timer);
			timer = setTimeout(() => this.#set({ [name]: event.target.value }), TYPING_MS);
		};
		const field = search && h("input", { type: "search", class: "search", "aria-label": search, placeholder: search, value: this.query.name ?? "", oninput: typed("name"), "data-search": true });
		this.fields = filters.map((filter) => this.#filter(filter, typed));
		this.#offer();
		return h("div", { class: "tools" }, field, this.fields, h("div", { class: "end" }, actions, this.#picker()));
	}

	#offer() {
		this.options.filters.forEach(({ when }, at) => { if (when) this.fields[at].hidden = !when(this.query); });
	}

	#filter({ name, label, options, type = "search", placeholder = label, chip, counted }, typed) {
		if (counted) return null;
		const value = this.query[name] ?? "";
		if (chip) return value ? this.#chip(name, label, value) : null;
		if (!options) return h("input", { type, class: "filter", name, "aria-label": label, placeholder, value, oninput: typed(name) });
		const list = h("select", { name, "aria-label": label, onchange: () => this.#set({ [name]: list.value }) }, options.map(([one, text]) => h("option", { value: one }, text)));
		list.value = value;
		return list;
	}

	#chip(name, label, value) {
		const words = value.length > CHIP_CHARACTERS ? `${value.slice(0, CHIP_CHARACTERS - 2)}…` : value;
		const mark = button([`${label}: ${words}`, icon("close")], () => { mark.remove(); this.#set({ [name]: undefined }); }, "small", { title: `Show all again, not only this ${label.toLowerCase()}` });
		return mark;
	}

	get #shown() {
		const picked = address().query.columns?.split(",");
		return this.options.columns.filter((one) => (picked && one.label !== "" ? picked.includes(one.id) : !one.hidden));
	}

	#picker() {
		if (!this.options.columns.some((one) => one.hidden)) return null;
		const picked = () => {
			setQuery({ columns: [...boxes.querySelectorAll(":checked")].map((box) => box.value).join(",") });
			this.#header();
			this.rows.clear();
			this.reload();
		};
		const boxes = h("div", {}, this.options.columns.filter((one) => one.label !== "").map((one) =>
			h("label", { class: "check" }, h("input", { type: "checkbox", value: one.id, checked: this.#shown.includes(one), onchange: picked }), one.label)));
		return h("details", { class: "pick", onkeydown: (event) => { if (event.key === "Escape") event.currentTarget.open = false; } },
			h("summary", { class: "button small" }, "Columns"), boxes);
	}

	#header() {
		const { sort, sort_reverse } = this.query;
		fill(this.head, this.#shown.map((one) => {
			if (one.sort === undefined) return headOf(one, one.label);
			const order = one.sort !== sort ? "none" : sort_reverse === "true" ? "descending" : "ascending";
			return headOf(one, button(one.label, () => this.#sort(one), "sort"), order);
		}));
	}

	#sort(chosen) {
		const { sort, sort_reverse } = this.query;
		const first = chosen.end ? "true" : "false"; // the largest numbers first, names from A on
		setQuery({ page: undefined, sort: chosen.sort, sort_reverse: chosen.sort === sort ? String(sort_reverse !== "true") : first });
		this.#header();
		this.head.querySelectorAll("button.sort")[this.#shown.filter((one) => one.sort !== undefined).indexOf(chosen)].focus();
		this.reload();
	}

	async #load(signal, isAsked) {
		let found;
		try {
			found = await this.#find(signal);
		} catch (error) {
			if (!signal.aborted && !this.ready) fill(this.note, h("p", { class: "problem" }, error.message));
			throw error;
		}
		this.ready = true;
		this.#show(found, isAsked);
	}

	// A page beyond the last, in an old link or after a deletion, is the first.
	async #find(signal) {
		const { source } = this.options;
		const { query } = this;
		if (query.page === "1") return source(query, signal);
		try {
			const found = await source(query, signal);
			if (found.items.length) return found;
		} catch (error) {
			if (error.status !== 400) throw error;
		}
		setQuery({ page: undefined });
		return source(this.query, signal);
	}

	// What was asked for is shown at once; else rows keep their places under a pointer or the focus.
	#show({ items, next, chips: groups = [], ...counted }, isAsked) {
		patch(this.chips, groups.map(([name, label, entries]) => chips(label, this.query[name], entries, (value) => this.#set({ [name]: value }))));
		const { key } = this.options;
		const columns = this.#shown;
		const rows = items.map((item) => [key(item), rowOf(columns, columns.map((one) => one.cell(item)), this.rows.get(key(item)))]);
		this.rows = new Map(rows);
		const placed = [...this.rows.values()];
		const same = placed.length === this.body.children.length && placed.every((row, at) => this.body.children[at] === row);
		if (!same && (isAsked || !this.#isBusy)) this.body.replaceChildren(...placed);
		this.#nothing(items.length === 0);
		if (next === undefined) this.#pages(items.length, counted);
		else this.#ages(items.length, next);
	}

	get #isBusy() {
		return this.body.children.length > 0 && (this.body.matches(":hover") || this.body.contains(document.activeElement));
	}

	#nothing(isEmpty) {
		const { many, options: { empty, filters } } = this;
		this.note.hidden = !isEmpty;
		this.table.hidden = isEmpty;
		if (!isEmpty) return;
		const isFiltered = this.query.name || filters.some((one) => this.query[one.name]);
		patch(this.note, isFiltered ? h("p", {}, `No ${many} match this filter.`) : empty?.() ?? h("p", {}, `There are no ${many}.`));
	}

	#turn(changes) {
		setQuery(changes);
		this.rows.clear();
		this.body.replaceChildren();
		return this.reload();
	}

	// Pages of a list in order of time, which has no count: the newest, and always older ones.
	#ages(number, next) {
		const { before } = this.query;
		const step = (label, to, disabled) => button(label, () => this.#turn({ before: to }), "small", { disabled });
		this.pager.hidden = !number && !before;
		patch(this.pager, h("span", { class: "quiet" }, `${before ? "" : "Newest "}${this.#words(number)}`),
			before || next ? buttons(step("Newest", undefined, !before), step("Older", next, !next)) : null);
	}

	#pages(number, { total, filtered = total ?? number, pages = 1 }) {
		const { page, page_size: size } = this.query;
		const first = (Number(page) - 1) * Number(size) + 1;
		const part = pages > 1 ? `${count(first)}–${count(first + number - 1)} of ` : "";
		const step = (by, label) => {
			const to = Number(page) + by;
			return button(label, () => this.#turn({ page: to }), "small", { disabled: to < 1 || to > pages });
		};
		this.pager.hidden = filtered === 0;
		patch(this.pager,
			h("span", { class: "quiet" }, `${part}${this.#words(filtered)}${total > filtered ? ` (${count(total)} in all)` : ""}`),
			pages > 1 ? buttons(step(-1, "Previous"), h("span", { class: "quiet" }, `Page ${count(Number(page))} of ${count(pages)}`), step(1, "Next")) : null);
	}

	get many() {
		const [one, many = `${one}s`] = this.noun;
		return many;
	}

	#words(number) {
		return counted(number, ...this.noun);
	}
}

customElements.define("warren-table", Table);

export function table(options) {
	return h("warren-table").begin(options);
}

// Returns a column: `more` are {sort, end, name, optional, hidden, clip, tight, wide, help}. `sort` is the
// server's field, `hidden` columns are shown when picked, `optional` ones not on a phone; `name` is the one
// that names a row.
export function column(id, label, cell, more) {
	return { id, label, cell, ...more };
}

// The usual ones, of the value at a path in the row.
const shown = (id, label, cell, more) => column(id, label, (row) => cell(valueAt(row, id)), { sort: id, ...more });
Object.assign(column, {
	named: (id, label, cell, more) => column(id, label, cell, { sort: id, name: true, ...more }),
	text: (id, label, more) => shown(id, label, (value) => value || "–", more),
	count: (id, label, more) => shown(id, label, count, { end: true, ...more }),
	bytes: (id, label, more) => shown(id, label, bytes, { end: true, ...more }),
	rate: (id, label, more) => shown(id, label, (value) => rate(value ?? 0), { end: true, ...more }),
	time: (id, label, more) => shown(id, label, time, more),
	vhost: (more) => column.text("vhost", "Virtual host", more),
	acts: (cell) => column("acts", "", cell, { end: true }),
});

function valueAt(row, path) {
	return path.split(".").reduce((found, part) => found?.[part], row);
}

// Returns a source for a table: a list of the API, which answers like RabbitMQ's.
export function pages(where, fixed) {
	return async (query, signal) => paged(await get(where, { ...query, ...fixed }, signal));
}

// Reads a page of RabbitMQ's lists; those of the hub name their items.
export function paged(found, items = found.items) {
	return { items, total: found.total_count, filtered: found.filtered_count, pages: found.page_count };
}

// Cuts a list that comes whole (short lists) as the server would: filter, sort, page.
export function cut(rows, query, name = (row) => row.name) {
	const wanted = (query.name ?? "").toLowerCase();
	const kept = rows.filter((row) => String(name(row)).toLowerCase().includes(wanted));
	const direction = query.sort_reverse === "true" ? -1 : 1;
	if (query.sort) kept.sort((a, b) => compared(valueAt(a, query.sort), valueAt(b, query.sort)) * direction);
	const size = Number(query.page_size);
	const first = (Number(query.page) - 1) * size;
	return { items: kept.slice(first, first + size), total: rows.length, filtered: kept.length, pages: Math.max(1, Math.ceil(kept.length / size)) };
}

function compared(a, b) {
	if (a === b) return 0;
	if (a === undefined || a === null) return 1;
	if (b === undefined || b === null) return -1;
	return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
