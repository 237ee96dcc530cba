// A button that opens a short list of acts beside it.

import { button, h, icon } from "./dom.js";

// Entries are [text, perform, kind]; those that are null are left out. The list is made when asked for.
export function menu(label, entries) {
	const open = (event) => show(event.currentTarget, label, entries().filter(Boolean));
	return button(icon("more"), open, "icon", { "aria-label": label, "aria-haspopup": "menu" });
}

function show(opener, label, entries) {
	const list = h("div", { class: "acts", popover: "auto", role: "menu", "aria-label": label }, entries.map(([text, perform, kind]) =>
		button(text, () => { list.hidePopover(); perform(); }, kind, { role: "menuitem" })));
	list.addEventListener("keydown", (event) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!step) return;
		event.preventDefault();
		const all = [...list.children];
		all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
	});
	list.addEventListener("toggle", (event) => { if (event.newState === "closed") { list.remove(); opener.focus({ preventScroll: true }); } });
	addEventListener("hashchange", () => list.remove(), { once: true });
	(opener.closest("main") ?? document.body).append(list);
	list.showPopover();
	const { bottom, right } = opener.getBoundingClientRect();
	list.style.top = `${Math.min(bottom + 4, innerHeight - list.offsetHeight - 8)}px`;
	list.style.left = `${Math.max(8, right - list.offsetWidth)}px`;
	list.querySelector("button")?.focus();
}
