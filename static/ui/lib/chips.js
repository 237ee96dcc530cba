// What a list says above its rows: an answer in words, and quick filters with how many rows each finds.

import { button, h, patch } from "./dom.js";
import { count, counted } from "./format.js";
import { state } from "./view.js";

const CHARACTERS = 48;

// Quick filters: entries are [value, text, number, kind of state]; those that find nothing are left out.
export function chips(label, now = "", found, choose) {
	const shown = found.filter(([value, , number]) => number || value === now || value === "");
	return shown.length > 1 && h("div", { class: "chips", role: "group", "aria-label": label }, shown.map(([value, text, number, kind]) => {
		const words = text.length > CHARACTERS ? `${text.slice(0, CHARACTERS)}…` : text;
		return button([kind === undefined ? words : state(words, kind), h("b", {}, count(number))], () => choose(value === now ? "" : value), null, { "aria-pressed": String(value === now), title: text });
	}));
}

// The entries of these filters: `words` are {value: [text, kind]}, `numbers` how many each finds.
export function entries(numbers, words) {
	const all = Object.values(numbers).reduce((sum, one) => sum + one, 0);
	return [["", "All", all], ...Object.entries(words).map(([value, [text, kind]]) => [value, text, numbers[value] ?? 0, kind])];
}

// The answer to the question of a page: `say` shows what is wrong, and the rest quieter. `of` says how many
// items of a list's page need a look, by a test and the verb for one and more; it returns what was found.
export function answer(rest) {
	const element = h("span", { class: "answer" }, rest);
	const say = (trouble, more = "") => patch(element, trouble && h("strong", {}, trouble, " "), more);
	return Object.assign(element, { say, of(found, one, isBad, verbs, well) {
		const { items, total } = found;
		const bad = items.filter(isBad).length;
		if (bad) say(`${part(bad, items.length, one, ...verbs)}${items.length < total ? " on this page" : ""}.`);
		else if (total) say("", `${counted(total, one)}${well ? `, ${well}` : ""}.`);
		return found;
	} });
}

// "2 of 14 feeds", and the verb for so many.
export function part(number, total, one, singular, plural) {
	return `${number === total ? "" : `${count(number)} of `}${counted(total, one)} ${number === 1 ? singular : plural}`;
}
