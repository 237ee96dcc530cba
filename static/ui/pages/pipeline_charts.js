// What the jobs have found, as charts: traffic, deliveries, terms. The server adds up hours or days.

import { address, chart, count, duration, fill, firstVhost, get, h, notice, refresh, select, session, setQuery } from "../lib/kit.js";

const EVERY_S = 30;
const DAY_MS = 86_400_000;
const LINES = 6;
const DAYS = [["1", "The last day"], ["7", "The last week"], ["30", "The last month"], ["90", "The last three months"]];
const milliseconds = (value) => (value === null || value === undefined ? "–" : duration(value / 1000));
const share = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(1)} %`);
const delivered = ({ delivered: good, attempts }) => good.map((one, at) => (attempts[at] ? (100 * one) / attempts[at] : null));
// [title, job, key of the groups, text of a value, values of a group]
const CHARTS = [
	["Messages by exchange", "rollup", "exchange", count, (values) => values.messages],
	["Messages by routing key", "rollup", "routing_key", count, (values) => values.messages],
	["Delivered by subscription", "delivery-health", "subscription", share, delivered],
	["Slowest deliveries", "delivery-health", "subscription", milliseconds, (values) => values.latency_p99_ms],
	["Trending terms", "trending", "term", count, (values) => values.documents],
];

export function pipelineCharts(signal) {
	const { query } = address();
	const holder = h("div", { class: "grid wide-cells" });
	const choose = (label, options, value, name) => {
		const list = select(options, value, { "aria-label": label, onchange: () => { setQuery({ [name]: list.value }); again(); } });
		return list;
	};
	const days = choose("Time", DAYS, query.days ?? "7", "days");
	const vhost = choose("Virtual host of the results", session.vhosts, query.results ?? firstVhost(), "results");
	const tools = h("div", { class: "tools" }, h("h2", {}, "Results"), h("div", { class: "end" }, session.vhosts.length > 1 && vhost, days));
	const element = h("div", { class: "stack", hidden: true }, tools, holder);
	const drawn = new Map();

	async function draw(gone) {
		const from = new Date(Date.now() - Number(days.value) * DAY_MS).toISOString();
		const ask = ([, job, by]) => get("/hub/pipeline/results", { job, by, from, vhost: vhost.value, top: LINES }, gone);
		const found = await Promise.all(CHARTS.map(ask));
		const shown = CHARTS.map((one, at) => (found[at].groups.length ? card(drawn, one, found[at]) : null)).filter(Boolean);
		if (shown.length !== holder.children.length || shown.some((one, at) => holder.children[at] !== one)) fill(holder, shown);
		element.hidden = !shown.length && days.value === "7";
		if (!shown.length) fill(holder, notice("", h("span", {}, "The jobs have published nothing in this time.")));
	}
	const again = refresh((gone) => draw(gone).catch((error) => { if (error.status !== 403) throw error; }), signal, EVERY_S);
	return element;
}

// A chart has its lines for good: other groups are another chart.
function card(drawn, [title, , , text, values], { groups, times, step }) {
	const names = groups.map((one) => one.name || "(none)");
	const key = JSON.stringify([names, step]);
	const before = drawn.get(title);
	const drawing = before?.key === key ? before.drawing : chart({ title: `${title}, by the ${step}`, text, lines: names.map((label, at) => ({ label, color: at + 1 })) });
	const kept = before?.key === key ? before.element : h("div", { class: "card" }, drawing);
	drawn.set(title, { key, drawing, element: kept });
	drawing.show([times, ...groups.map((one) => values(one.values))]);
	return kept;
}
