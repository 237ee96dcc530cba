// Definitions: export as one file, import of one with a look at what it holds first.

import { act, attempt, button, buttons, card, counted, facts, fill, get, h, has, heading, notice, path, post, resume, select, session, side, state } from "../lib/kit.js";

const SECTIONS = ["vhosts", "users", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "exchanges", "queues", "bindings"];
const ABOUT = "Virtual hosts, users, permissions, policies, exchanges, queues and bindings as one document, as RabbitMQ writes and reads it. Messages are not in it.";

export default function definitions() {
	const title = heading("Definitions", { about: ABOUT });
	if (!has("administrator")) return [title, notice("warn", state("Not permitted", "warn"), "Export and import need the tag administrator.")];
	return [title, side(card("Export", exporting()), card("Import", importing()))];
}

function scope() {
	return select([["", "The whole server"], ...session.vhosts.map((name) => [name, `Virtual host ${name}`])], "", { "aria-label": "What" });
}

function where({ value }) {
	return value === "" ? "/definitions" : path`/definitions/${value}`;
}

function exporting() {
	const choice = scope();
	const save = async () => {
		const text = JSON.stringify(await get(where(choice)), null, 2);
		const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
		h("a", { href: url, download: `warren-${new Date().toISOString().slice(0, 10)}.json` }).click();
		setTimeout(() => URL.revokeObjectURL(url), 1000);
	};
	return [h("p", {}, "The document of the whole server has the hashes of passwords: keep it as you keep them."), choice, buttons(button("Download definitions", () => attempt(save), "main"))];
}

function importing() {
	const choice = scope();
	const shown = h("div", { class: "stack", role: "status" });
	const file = h("input", { type: "file", accept: "application/json,.json", "aria-label": "File with definitions", onchange: () => attempt(look) });
	async function look() {
		const [chosen] = file.files;
		fill(shown); // what an earlier file held can't be imported by mistake
		const text = await chosen?.text();
		if (!chosen || chosen !== file.files[0]) return null;
		let found;
		try {
			found = JSON.parse(text);
		} catch (error) {
			return fill(shown, h("p", { class: "problem" }, `${chosen.name} is not JSON: ${error.message}`));
		}
		return fill(shown, summary(found), buttons(button("Import definitions", () => add(text, found), "main")));
	}
	async function add(text, found) {
		const what = counted(SECTIONS.reduce((sum, section) => sum + (found[section]?.length ?? 0), 0), "definition");
		const target = choice.value === "" ? "the server" : choice.value;
		let left = [];
		const is_done = await act({ act: `Add ${what} to ${target}`, text: "What exists has to be equivalent and stays; nothing is deleted. At the first error nothing is added." }, async () => { left = (await post(where(choice), text))?.left_out ?? []; }, `Added ${what} to ${target}.`);
		if (!is_done) return;
		fill(shown, left.length ? notice("warn", state(`${counted(left.length, "thing")} left out`, "warn"), h("ul", {}, left.map((one) => h("li", {}, one)))) : null);
		file.value = "";
		await attempt(resume);
	}
	return [h("p", {}, "A file of Warren or of RabbitMQ."), choice, file, shown];
}

function summary(found) {
	const rows = SECTIONS.filter((section) => found[section]?.length).map((section) => [section.replace("_", " "), String(found[section].length)]);
	return rows.length ? facts(rows) : h("p", { class: "problem" }, "There are no definitions in this file.");
}
