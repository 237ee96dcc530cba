// The overview: is everything all right, what flows, and what is stuck.

import { answer, bare, bytes, card, chart, count, facts, follow, grid, h, heading, link, live, meter, notice, pageLink, patch, RANGE_S, rate, section, select, session, setQuery, showRange, side, stack, state, tiles, wrapped } from "../lib/kit.js";

const CHARTS = [
	["Messages", [["publish", "Published", 1], ["deliver_get", "Delivered", 2], ["ack", "Acked", 3]], rate],
	["Webhooks", [["delivered", "Delivered", 1], ["retried", "Retried", 2], ["dead", "Dead", 5]], rate],
	["Waiting", [["messages_ready", "Ready", 4], ["messages_unacknowledged", "Unacked", 6]], count],
];
const RANGES = [["600", "Last 10 minutes"], ["3600", "Last hour"], ["86400", "Last day"]];
const WORDS = { "no consumer": "No consumer", growing: "Growing", "subscription is paused or waits": "Paused or waits" };
const QUEUES = [{ label: "Queue", wide: true }, { label: "Why" }, { label: "Messages", end: true }, { label: "Growth", end: true }];
const CALLBACKS = [{ label: "Callback", wide: true }, { label: "Last error", clip: true }, { label: "Failures", end: true }];

export default function overview({ query, signal }) {
	const charts = (session.engine ? CHARTS.slice(1, 2) : CHARTS).map(([title, lines, text]) => [lines, chart({ title, text, lines: lines.map(([, label, color]) => ({ label, color })) })]);
	const range = select(RANGES, query.range ?? String(RANGE_S), { "aria-label": "Time of the charts", onchange: () => {
		setQuery({ range: range.value === String(RANGE_S) ? undefined : range.value });
		showRange(Number(range.value));
	} });
	const says = answer("Is anything stuck, and where?");
	const page = stack(h("p", { class: "loading" }, "Waiting for the first numbers."));

	function draw({ snapshot, history }) {
		if (!snapshot) return;
		if (history) for (const [lines, drawing] of charts) drawing.show([history.times, ...lines.map(([name]) => history.series[name] ?? [])]);
		says.say(...summary(snapshot));
		patch(page, stack(words(snapshot.state)), rates(snapshot), side(charts.map(([, drawing]) => card(null, drawing)), card("Server", !session.engine && resources(snapshot), objects(snapshot))),
			side(queues(snapshot.queues), callbacks(snapshot.callbacks)));
	}

	showRange(Number(range.value));
	signal.addEventListener("abort", () => showRange(RANGE_S));
	follow(draw, signal);
	draw(live);
	return [heading("Overview", { about: says, actions: [range, session.engine && h("a", { class: "button", href: session.engine }, "RabbitMQ"), h("a", { class: "button", href: "#/welcome" }, "Send a sample message")] }), page];
}

function summary({ state: lines, troubled_queues: queues, hub, rates: { publish, deliver_get: deliver } }) {
	const stuck = queues.no_consumer + queues.growing + hub.failing + lines.filter((one) => one.level === "bad").length;
	const [into, out] = [publish, deliver].map((one) => rate(one).replace("/s", ""));
	const flow = publish === undefined ? "" : publish + deliver === 0 ? "No message flows now." : `${stuck ? "The rest flows: " : ""}${into} messages a second in, ${out} out.`;
	return stuck ? [stuck === 1 ? "One thing is stuck." : `${count(stuck)} things are stuck.`, flow] : ["", `Nothing is stuck. ${flow}`];
}

function words(lines) {
	const troubles = lines.filter((one) => one.level !== "ok");
	if (!troubles.length) return notice("good", state("All is well", "good"), h("span", { class: "quiet" }, lines.map((one) => one.text).join(" ")));
	return troubles.map(({ level, text, link: href }) => notice(level, state(level === "bad" ? "Problem" : "Warning", level), h("span", {}, text), href && h("a", { href }, "Show")));
}

function rates({ rates: now, messages, hub }) {
	const sorted = (by) => link("/queues", { sort: by, sort_reverse: "true" });
	return tiles([
		["Published", rate(now.publish), "#/exchanges"], ["Delivered", rate(now.deliver_get), "#/channels"],
		["Ready", count(messages.ready), sorted("messages_ready")], ["Unacked", count(messages.unacknowledged), sorted("messages_unacknowledged")],
		["Webhooks", rate(hub.rates.delivered), "#/deliveries"], ["Retries waiting", count(hub.waiting_retries), link("/deliveries", { outcome: "retried" })],
		["Dead letters", count(hub.dead_letters), "#/dead-letters"],
	].slice(session.engine ? 4 : 0));
}

function objects({ objects: now, hub }) {
	return tiles([
		["Connections", count(now.connections), "#/connections"], ["Channels", count(now.channels), "#/channels"], ["Consumers", count(now.consumers), link("/queues", { sort: "consumers", sort_reverse: "true" })],
		["Exchanges", count(now.exchanges), "#/exchanges"], ["Queues", count(now.queues), "#/queues"],
		["Subscriptions", count(hub.subscriptions), "#/subscriptions"], ["Feeds", count(hub.feeds), "#/feeds"], ["Tunnels", count(hub.tunnels), "#/tunnels"],
	].slice(session.engine ? 5 : 0));
}

function queues(rows) {
	return rows.length > 0 && section("Queues to look at", null, grid("Queues to look at", QUEUES, rows.map(({ vhost, name, subscription, reason, messages, growth_per_s: growth }) => [
		subscription ? pageLink(wrapped(bare(subscription.callback)), "/subscriptions", subscription.id) : pageLink(name, "/queues", vhost, name),
		state(WORDS[reason] ?? reason, "warn"), count(messages), rate(growth)])));
}

function callbacks(rows) {
	return rows.length > 0 && section("Callbacks to look at", null, grid("Callbacks to look at", CALLBACKS, rows.map((row) => [pageLink(wrapped(bare(row.callback)), "/subscriptions", row.id), h("span", { title: row.error }, row.error), count(row.failures)])));
}

function resources({ memory, disk }) {
	const share = memory.used_bytes / memory.limit_bytes;
	return facts([
		["Memory for messages", [meter(share, memory.alarm ? "bad" : share > 0.8 ? "warn" : ""), h("small", {}, `${bytes(memory.used_bytes)}; publishers wait above ${bytes(memory.limit_bytes)}`)]],
		["Free disk", [bytes(disk.free_bytes), " ", h("small", {}, `publishers wait below ${bytes(disk.limit_bytes)}`)]],
	]);
}
