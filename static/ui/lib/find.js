// Ctrl K: goes to any page, queue, exchange or subscription by a part of its name.

import { NAVIGATION } from "../routes.js";
import { request } from "./api.js";
import { open } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { report } from "./messages.js";
import { link } from "./router.js";
import { may, session } from "./session.js";

const SHOWN = 6;
const TYPING_MS = 150;
const LISTS = [
	["queue", "/queues", ({ vhost, name }) => [name, link("/queues", vhost, name)]],
	["exchange", "/exchanges", ({ vhost, name }) => [name || "(default exchange)", link("/exchanges", vhost, name || "amq.default")]],
	["subscription", "/hub/subscriptions", ({ id, callback }) => [callback, link("/subscriptions", id)]],
];

export function find() {
	return open("Go to", (close) => {
		const list = h("ul", { class: "found", "aria-label": "Found" });
		const first = () => list.querySelector("a");
		const field = h("input", { type: "search", "aria-label": "Part of a name", placeholder: "A page, queue, exchange or callback", autocomplete: "off", spellcheck: "false" });
		let timer = 0;
		let turn = 0;
		async function show() {
			const mine = (turn += 1);
			const rows = [...pagesOf(field.value), ...(field.value ? await objectsOf(field.value) : [])];
			if (mine !== turn) return;
			fill(list, rows.map(([kind, text, href]) => h("li", {}, h("a", { href, onclick: close }, h("span", {}, text), h("small", {}, kind)))), rows.length === 0 && h("li", {}, "Nothing has this in its name."));
		}
		function step(event) {
			const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
			if (!by) return;
			event.preventDefault();
			const stops = [field, ...list.querySelectorAll("a")];
			stops[(stops.indexOf(document.activeElement) + by + stops.length) % stops.length].focus();
		}
		field.oninput = () => {
			clearTimeout(timer);
			timer = setTimeout(() => show().catch(report), TYPING_MS);
		};
		show();
		return h("form", { class: "stack", onkeydown: step, onsubmit: (event) => { event.preventDefault(); first()?.click(); } }, field, list);
	});
}

function pagesOf(text) {
	const shown = NAVIGATION.flatMap(([, entries]) => entries).filter(([id, label, , tag]) => may(id, tag) && label.toLowerCase().includes(text.toLowerCase()));
	return shown.slice(0, SHOWN).map(([id, label]) => ["page", label, link(`/${id}`)]);
}

async function objectsOf(name) {
	const lists = LISTS.slice(session.engine ? 2 : 0);
	const found = await Promise.all(lists.map(([, where]) => request("GET", where, { query: { name, page: 1, page_size: SHOWN } })));
	return lists.flatMap(([kind, , words], at) => (found[at].items ?? found[at].subscriptions).map((one) => [kind, ...words(one)]));
}
