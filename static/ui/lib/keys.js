// Shortcuts: / goes to the search field, g and a letter to a page, Ctrl K to anything, ? lists them all.

import { NAVIGATION } from "../routes.js";
import { closing, open } from "./dialogs.js";
import { h } from "./dom.js";
import { find } from "./find.js";

const PAGES = { o: "", q: "queues", e: "exchanges", c: "connections", s: "subscriptions", d: "deliveries", x: "dead-letters", f: "feeds", l: "console", u: "users" };
const LABELS = new Map(NAVIGATION.flatMap(([, entries]) => entries));
const SEQUENCE_MS = 1500;
let waiting = 0;

export function startKeys() {
	addEventListener("keydown", (event) => {
		if (event.key === "k" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open], .sign-in")) {
			event.preventDefault();
			return void find();
		}
		if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
		if (event.target.closest("input, textarea, select, [contenteditable]")) return;
		const second = Date.now() - waiting < SEQUENCE_MS ? PAGES[event.key] : undefined;
		waiting = event.key === "g" ? Date.now() : 0;
		if (second !== undefined) location.hash = `/${second}`;
		else if (event.key === "?") list();
		else if (event.key === "/") {
			const field = document.querySelector("[data-search]");
			if (!field) return;
			event.preventDefault();
			field.focus();
			field.select();
		}
	});
}

function list() {
	const row = (keys, text) => [h("dt", {}, keys.map((key) => [h("kbd", {}, key), " "])), h("dd", {}, text)];
	open("Shortcuts", (close) => h("div", { class: "stack" }, h("dl", { class: "facts" }, row(["Ctrl", "K"], "Find anything"), row(["/"], "Search in the list"), Object.entries(PAGES).map(([key, page]) => row(["g", key], LABELS.get(page))), row(["?"], "This list")),
		closing(close)));
}
