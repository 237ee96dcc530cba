// Rows of a list that are ticked, for acts on all of them.

import { button, h, patch } from "./dom.js";
import { count } from "./format.js";
import { column } from "./table.js";

// `name` says what a box is for; `acts(rows)` returns the buttons of the bar for what is ticked, or for all.
export function ticks({ key = (row) => row.id, name, acts }) {
	const ticked = new Map();
	const bar = h("div", { class: "actions" });
	const tick = (row) => (event) => {
		if (event.target.checked) ticked.set(key(row), row);
		else ticked.delete(key(row));
		draw();
	};
	function draw() {
		const rows = [...ticked.values()];
		patch(bar, rows.length > 0 && [h("span", { class: "quiet", role: "status" }, `${count(rows.length)} picked`), button("All here", all, "link"), button("None", clear, "link")], acts(rows));
	}
	const boxes = (state) => bar.closest("main")?.querySelectorAll(`td input[type=checkbox]${state}`) ?? [];
	function all() {
		boxes(":not(:checked)").forEach((one) => one.click());
	}
	function clear() {
		ticked.clear();
		boxes(":checked").forEach((one) => { one.checked = false; });
		draw();
	}
	const picks = column("pick", "Pick", (row) => h("input", { type: "checkbox", "aria-label": `Pick ${name(row)}`, checked: ticked.has(key(row)), onchange: tick(row) }));
	return { bar, column: picks, draw, clear };
}
