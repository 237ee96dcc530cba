// The live console: listens to an exchange or a queue, and publishes, with the curl line of each.

import { attempt, button, buttons, card, command, empty, fill, firstVhost, get, h, heading, notice, path, report, section, select, session, setQuery, side, state } from "../lib/kit.js";
import { messageList } from "./console_messages.js";
import { listenLine, publishBox } from "./console_publish.js";
import { listen } from "./console_stream.js";

const TYPING_MS = 250;
const NAMES = 20;
const KINDS = [["x", "Exchange"], ["q", "Queue"]];

export default function liveConsole({ query, signal }) {
	const input = (name, attributes) => h("input", { name, autocomplete: "off", spellcheck: "false", value: query[name] ?? "", ...attributes });
	const kind = select(KINDS, query.kind === "q" ? "q" : "x", { name: "kind" });
	const name = input("name", { list: "console-names", placeholder: "amq.topic" });
	const key = input("key", { placeholder: "all" });
	const vhost = select(session.vhosts, session.vhosts.includes(query.vhost) ? query.vhost : firstVhost() ?? "", { name: "vhost" });
	const names = h("datalist", { id: "console-names" });
	const field = (label, element, help) => h("label", { class: "field" }, h("span", {}, label), element, help && h("small", {}, help));
	const start = h("button", { type: "submit", class: "main" }, "Listen");
	const stop = button("Stop", () => end(), null, { hidden: true });
	const fields = h("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); begin(); }, oninput: typed },
		field("Listen to", kind), field("Name", name), names, field("Binding keys", key, "Separated by spaces, such as orders.# news.*"), field("Virtual host", vhost), h("div", { class: "buttons wide" }, start, stop));

	const place = () => ({ kind: kind.value, name: name.value || (kind.value === "x" ? "amq.topic" : ""), vhost: vhost.value, keys: kind.value === "x" ? key.value.split(/\s+/).filter(Boolean) : [] });
	const status = h("span", { role: "status" }, state("Not listening"));
	const numbers = h("span", { class: "quiet" });
	const warning = h("div");
	const line = command();
	const publish = publishBox(place);
	const waiting = h("div", {}, empty("No messages yet", "Listen to an exchange, then publish in the box beside it: messages appear here as they come, and listening to an exchange takes nothing away from others."));
	const list = messageList((text) => {
		numbers.textContent = text;
		waiting.hidden = text !== "";
	});
	const pause = button("Pause", () => {
		const is_paused = pause.getAttribute("aria-pressed") !== "true";
		pause.setAttribute("aria-pressed", String(is_paused));
		pause.textContent = is_paused ? "Resume" : "Pause";
		list.pause(is_paused);
	}, "small", { hidden: true, "aria-pressed": "false" });
	let listening = null;
	let timer = 0;

	function show(word, kindOf, error) {
		fill(status, state(word, kindOf), error && [" ", h("small", {}, error.message)]);
	}
	function end() {
		listening?.abort();
		listening = null;
		start.hidden = false;
		stop.hidden = true;
		show("Not listening");
	}
	function begin() {
		end();
		listening = new AbortController();
		const mine = listening;
		start.hidden = true;
		stop.hidden = pause.hidden = false;
		show("Connecting", "info");
		const { vhost: host, kind: letter, name: source, keys } = place();
		listen({ vhost: host, from: `${letter}/${source}`, keys }, ({ opened, lost, message, ended }) => {
			if (mine.signal.aborted) return;
			if (message) return void list.add(message);
			if (opened) show("Listening", "good");
			else if (lost) show("Connecting again", "warn", lost);
			else if (ended) { end(); show("Ended", "bad", ended); }
		}, mine.signal).catch(report);
	}
	function draw() {
		const now = place();
		const is_queue = now.kind === "q";
		setQuery({ kind: is_queue ? "q" : undefined, name: name.value, key: key.value, vhost: now.vhost === "/" ? undefined : now.vhost });
		key.closest("label").hidden = is_queue;
		name.required = is_queue;
		name.placeholder = is_queue ? "a queue or stream" : "amq.topic";
		fill(warning, is_queue && notice("warn", state("Takes messages", "warn"), h("span", {}, "Listening to a classic or quorum queue takes its messages, as every consumer does. A stream keeps them.")));
		line.set(listenLine(now));
		publish.draw();
	}
	function typed(event) {
		draw();
		if (event.target === key || session.engine) return;
		clearTimeout(timer);
		timer = setTimeout(() => attempt(() => suggest(names, place(), name.value, signal)), TYPING_MS);
	}

	signal.addEventListener("abort", end);
	addEventListener("pagehide", end, { signal });
	draw();
	if (query.name && kind.value === "x") begin();
	const tools = buttons(numbers, pause, button("Clear", () => list.clear(), "small"));
	return [heading("Live console", { about: "Messages as they come, and a box to publish. The curl lines do the same from a terminal." }),
		side(card("Listen", fields, warning, line), card("Publish", publish.element)), section("Messages", [status, tools], waiting, list.element)];
}

// Names that begin to be typed: a few, found by the server.
async function suggest(holder, { kind, vhost }, typed, signal) {
	const { items } = await get(kind === "x" ? path`/exchanges/${vhost}` : path`/queues/${vhost}`, { page: 1, page_size: NAMES, name: typed, columns: "name" }, signal);
	fill(holder, items.filter((one) => one.name).map((one) => h("option", { value: one.name })));
}
