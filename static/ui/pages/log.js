// The log of the server as it is written.

import { act, address, answer, asText, button, card, chips, clock, counted, date, done, empty, entries, facts, fill, followEvents, formDialog, get, h, heading, headOf, patch, path, put, quiet, refresh, remove, rowOf, setQuery, state } from "../lib/kit.js";

const LINES = 200;
const KEPT_LINES = 1000;
const LEVELS = ["debug", "info", "warning", "error"];
const SHOWN = { critical: ["Critical", "bad"], error: ["Error", "bad"], warning: ["Warning", "warn"], info: ["Info", ""], debug: ["Debug", ""] };
const OWN = ["at", "time", "level", "area", "logger", "message", "event"];
const COLUMNS = [{ label: "Time" }, { label: "Level" }, { label: "Area", optional: true }, { label: "Line", wide: true }];

export default function log({ signal }) {
	const { query } = address();
	const body = h("tbody");
	const wanted = { level: query.level ?? "", text: query.text ?? "" };
	const note = h("p", { class: "quiet", role: "status" });
	const levels = h("div");
	const nothing = h("div", {}, empty("Nothing was logged yet", "Warnings, errors and changes appear here as they are logged."));
	const pause = button("Pause", () => {
		paused = !paused;
		pause.setAttribute("aria-pressed", String(paused));
		if (!paused) waiting.splice(0).forEach(add);
		label();
	}, null, { "aria-pressed": "false" });
	const levelChips = h("div");
	const says = answer("The newest line is first. All of it is where the server writes it.");
	let telling = 0;
	let paused = false;
	const waiting = [];
	const known = new Set(); // after a break the last lines are sent again

	function label() {
		pause.textContent = paused ? `Continue (${waiting.length} new)` : "Pause";
	}
	function shows(row) {
		const { level, text } = wanted;
		row.hidden = Boolean((level && row.dataset.level !== level) || (text && !row.textContent.toLowerCase().includes(text.toLowerCase())));
	}
	function filter(changes) {
		Object.assign(wanted, changes);
		setQuery(changes);
		[...body.children].forEach(shows);
		tell();
	}
	// How many lines of each level are here.
	function tell() {
		const numbers = {};
		for (const { dataset: { level } } of body.children) numbers[level] = (numbers[level] ?? 0) + 1;
		const { critical = 0, error = 0, warning = 0 } = numbers;
		const found = [[critical + error, "error"], [warning, "warning"]].filter(([number]) => number).map(([number, word]) => counted(number, word));
		const all = counted(body.children.length, "line");
		says.say(found.length ? `${found.join(" and ")} in the last ${all}.` : "", found.length ? "" : `No warning in the last ${all}.`);
		patch(levelChips, chips("Level", wanted.level, entries(numbers, SHOWN), (level) => filter({ level })));
	}
	function add(line) {
		const row = lineRow(line);
		shows(row);
		body.prepend(row);
		nothing.hidden = true;
		if (!telling) telling = setTimeout(() => { telling = 0; tell(); });
		while (body.children.length > KEPT_LINES) body.lastChild.remove();
	}
	function take(event) {
		const sent = `${event.lastEventId} ${event.data}`;
		if (known.has(sent)) return;
		known.add(sent);
		if (known.size > KEPT_LINES) known.delete(known.values().next().value);
		if (!paused) return void add(JSON.parse(event.data));
		waiting.push(JSON.parse(event.data));
		if (waiting.length > KEPT_LINES) waiting.shift();
		label();
	}
	const close = followEvents("/warren/log", { lines: LINES }, { open: () => fill(note), message: take }, () => fill(note, "The connection is lost; it is tried again."));
	signal.addEventListener("abort", close);
	refresh(async (gone) => patch(levels, levelCard(await get("/warren/log-levels", {}, gone))), signal, 0);
	return [
		heading("Log", { actions: pause, about: says }),
		levelChips, h("div", { class: "tools" },
			h("input", { type: "search", class: "search", "data-search": true, "aria-label": "Filter lines", placeholder: "Filter lines", value: wanted.text, oninput: (event) => filter({ text: event.target.value }) }), note),
		h("div", { class: "card flush" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lines of the log" }, h("table", {}, h("thead", {}, h("tr", {}, COLUMNS.map((one) => headOf(one, one.label)))), body)), nothing),
		levels,
	];
}

function lineRow(line) {
	const at = line.at ?? line.time;
	const rest = Object.entries(line).filter(([key]) => !OWN.includes(key)).map(([key, value]) => `${key}=${asText(value)}`).join(" ");
	return rowOf(COLUMNS, [h("time", { datetime: at, title: date(at) }, clock(at)), state(...(SHOWN[line.level] ?? [line.level])), line.area ?? line.logger ?? "",
		[h("span", {}, line.message ?? line.event ?? ""), rest && h("span", { class: "quiet mono" }, ` ${rest}`)]], h("tr", { "data-level": line.level }));
}

function levelCard(levels) {
	const reset = (area) => act({ act: `Give ${area} the usual level again` }, () => remove(path`/warren/log-levels/${area}`), "Done.");
	return card(["Levels", button("Set the level of an area", change, "small")],
		levels.length ? facts(levels.map(({ area, level }) => [area, [level, " ", button("Reset", () => reset(area), "link")]]))
			: quiet("All areas have the usual level. An area is a folder or module, such as hub.delivery; debug shows each step there until the server ends."));
}

function change() {
	return formDialog("Set the level of an area", { button: "Set level", fields: [{ name: "area", label: "Area", required: true, placeholder: "hub.delivery" }, { name: "level", label: "Level", type: "select", options: LEVELS }],
		submit: async ({ area, level }) => {
			await put(path`/warren/log-levels/${area}`, { level });
			done(`${area} logs from ${level} on.`);
		} });
}
