// The live stream of the server: one snapshot a second, shared by all that is on the page.

import { followEvents } from "./events.js";

export const RANGE_S = 600;
const STALE_MS = 4000;
const WATCH_MS = 1000;
const READERS = new Set();
export const live = { history: null, snapshot: null, at: 0, state: "connecting" };
let range_s = RANGE_S;
let started = null;
let close = null;

// Calls `reader(live)` with what is known now and after each event, until `signal` aborts or the user signs out.
export function follow(reader, signal) {
	READERS.add(reader);
	signal?.addEventListener("abort", () => READERS.delete(reader));
	if (live.snapshot) reader(live);
}

export function startLive() {
	started = new AbortController();
	const { signal } = started;
	document.addEventListener("visibilitychange", () => (document.hidden ? pause() : connect()), { signal });
	const watch = setInterval(() => { if (close && Date.now() - live.at > STALE_MS) change("stale"); }, WATCH_MS);
	signal.addEventListener("abort", () => clearInterval(watch));
	connect();
}

// Forgets what was known, too: the next user may see less.
export function stopLive() {
	started?.abort();
	READERS.clear();
	pause();
	Object.assign(live, { history: null, snapshot: null, at: 0, state: "connecting" });
}

function pause() {
	close?.();
	close = null;
	change("paused");
}

function connect() {
	if (close || document.hidden) return;
	const history = (event) => { live.history = JSON.parse(event.data); };
	close = followEvents("/warren/live", { history_s: range_s }, { history, snapshot }, () => change("stale"));
}

export function showRange(wanted_s) {
	if (wanted_s === range_s) return;
	range_s = wanted_s;
	again();
}

function again() {
	close?.();
	close = null;
	connect();
}

function snapshot(event) {
	live.snapshot = JSON.parse(event.data);
	live.at = Date.now();
	append(live.history, live.snapshot);
	change("live");
}

function change(state) {
	live.state = state;
	READERS.forEach((reader) => reader(live));
}

// Beyond ten minutes the server counts by the minute: each is asked for when it is over.
function append(history, { at_ms, rates, messages, hub }) {
	const now_s = Math.round(at_ms / 1000);
	if (!history) return;
	if (history.step_s > 1) {
		if (now_s - history.times.at(-1) > 2 * history.step_s) setTimeout(again);
		return;
	}
	const values = { ...rates, ...hub.rates, messages_ready: messages.ready, messages_unacknowledged: messages.unacknowledged };
	history.times.push(now_s);
	for (const [name, series] of Object.entries(history.series)) series.push(values[name] ?? null);
	while (history.times.length > range_s) {
		history.times.shift();
		Object.values(history.series).forEach((series) => series.shift());
	}
}
