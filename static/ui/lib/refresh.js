// Repeats a request while the page is open and can be seen, and after each change.

import { on } from "./api.js";
import { h, patch } from "./dom.js";
import { report } from "./messages.js";

const REFRESH_S = 5;
const LOADS = new Set();
on.changed = () => LOADS.forEach((again) => setTimeout(again));

// Calls `load` now, after each change that this page makes, and each `every_s` seconds after it has
// finished (0: never), until `signal` aborts. Returns a function that calls it at once. `load(signal,
// is_asked)` is told whether anybody but the clock has called it. A failure is shown until the next success.
export function refresh(load, signal, every_s = REFRESH_S, isLoaded = false) {
	let timer = 0;
	let failure = null;
	let message = null;
	let running = null;
	let is_asked = false;
	function failed(error) {
		if (error?.message === failure?.message) return;
		message?.remove();
		message = error && report(error);
		failure = error;
	}
	async function turn() {
		clearTimeout(timer);
		const asked = is_asked;
		is_asked = false;
		try {
			await load(signal, asked);
			failed(null);
		} catch (error) {
			if (signal.aborted) return;
			failed(error);
		}
		wait();
	}
	function wait() {
		if (!signal.aborted && !document.hidden && every_s) timer = setTimeout(next, every_s * 1000);
	}
	function next() {
		if (!signal.aborted) running = (running ?? Promise.resolve()).then(turn);
		return running;
	}
	function again() {
		is_asked = true;
		return next();
	}
	LOADS.add(again);
	signal.addEventListener("abort", () => { clearTimeout(timer); LOADS.delete(again); });
	document.addEventListener("visibilitychange", () => { if (!document.hidden) next(); }, { signal });
	if (isLoaded) wait();
	else next();
	return again;
}

// Returns an element with what `draw` makes of what `load` finds, now and at each refresh. What `draw`
// did not make itself, such as charts, tables and forms, stays as it is.
export async function watch(load, draw, signal, every_s) {
	const page = h("div", { class: "parts" });
	const show = async () => patch(page, draw(await load(signal)));
	await show();
	refresh(show, signal, every_s, true);
	return page;
}
