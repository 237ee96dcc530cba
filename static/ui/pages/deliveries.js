// The log of attempts: what was sent where, what was answered, and sending it again.

import { answer, attempt, below, button, code, column, count, counted, duration, empty, entries, get, h, heading, link, pageLink, part, precise, table, tag, ticks, vhostFilter, wrapped } from "../lib/kit.js";
import { answerOf, OUTCOMES, outcome, sourceLink } from "./hub_words.js";
import { resend, resendButton } from "./resend.js";

const STATUSES = { "2xx": ["2xx"], "3xx": ["3xx"], "4xx": ["4xx"], "5xx": ["5xx"], none: ["No answer"] };
const SPANS = [["", "Any time"], ["900", "Last 15 minutes"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last week"], ["between", "Between …"]];
const isBetween = ({ span }) => span === "between";
const KNOWN = ["subscription", "webhook_id", "outcome", "status", "callback", "source", "topic", "vhost"];
const TIMES = ["since", "until"];
const FILTERS = [
	{ name: "outcome", counted: true }, { name: "status", counted: true },
	{ name: "callback", label: "Callback", placeholder: "Callback has …" }, { name: "source", label: "Exchange or queue" }, { name: "topic", label: "Topic" }, { name: "span", label: "Time", options: SPANS },
	{ name: "since", label: "From", type: "datetime-local", when: isBetween }, { name: "until", label: "Until", type: "datetime-local", when: isBetween },
	{ name: "subscription", label: "Subscription", chip: true }, { name: "webhook_id", label: "Message", chip: true },
];
const COLUMNS = [
	column("at", "When", (row) => pageLink(precise(row.at), "/deliveries", String(row.id)), { tight: true }),
	column("outcome", "Outcome", outcome),
	column("answer", "Answer", (row) => h("span", { title: answerOf(row) }, answerOf(row)), { clip: true }),
	column("callback", "Callback and source", (row) => [h("a", { class: "url", href: link("/subscriptions", row.subscription) }, wrapped(row.callback)), row.source && below(sourceLink(row.source), " ", row.topic && tag(row.topic))], { wide: true }),
	column("number", "Try", (row) => row.number, { end: true, optional: true }),
	column("latency", "Took", (row) => duration(row.latency_ms / 1000), { end: true, optional: true }),
	column("message", "Message", (row) => pageLink(code(row.webhook_id), "/deliveries", { webhook_id: row.webhook_id }), { hidden: true }),
	column.acts((row) => row.outcome !== "delivered" && resendButton(row, "small")),
];

export default function deliveries({ signal }) {
	const says = answer("Requests to callbacks, newest first.");
	const picks = ticks({ name: (row) => `${row.webhook_id}, attempt ${row.number}`, acts: (rows) => button(rows.length ? `Resend ${counted(rows.length, "attempt")}` : "Resend all that match",
		() => attempt(async () => {
			if (await resend(rows.length ? { ids: rows.map(({ id }) => String(id)) } : conditions(list.query), rows.length) === true) picks.clear();
		}), null, { disabled: !total }) });
	let total = 0;
	const list = table({
		noun: "attempt", signal, search: null, key: (row) => row.id, columns: [picks.column, ...COLUMNS], filters: [...FILTERS, ...vhostFilter()],
		source: async (query, gone) => {
			const given = conditions(query);
			const [found, { counts, is_complete: isAll }] = await Promise.all([
				get("/hub/attempts", { ...given, before: query.before, limit: query.page_size }, gone), get("/hub/attempts/counts", { ...given, outcome: null, status: null }, gone)]);
			total = found.attempts.length;
			picks.draw();
			says.say(...summary(counts, isAll));
			return { items: found.attempts, next: found.next_before, chips: chipsOf(counts, query) };
		},
		empty: () => empty("Nothing was delivered yet", "Each request to a callback is listed here for a week, with what it answered.", h("p", {}, h("a", { href: "#/subscriptions" }, "Subscribe a callback"), " and publish a message to its source.")),
	});
	list.addEventListener("filter", picks.clear);
	return [heading("Deliveries", { about: says, actions: picks.bar }), list];
}

const sum = (counts, wanted = () => true) => counts.filter(wanted).reduce((total, { attempts }) => total + attempts, 0);

function summary(counts, isAll) {
	const of = (word) => sum(counts, ({ outcome: one }) => one === word);
	const all = sum(counts);
	const good = of("delivered");
	if (!all) return ["", "No request to a callback matches."];
	const whose = isAll ? counted(all, "attempt") : `the last ${count(all)} attempts`;
	const accepted = `${count(good)} ${good === 1 ? "was" : "were"} accepted.`;
	if (good === all) return ["", isAll ? part(all, all, "attempt", "was accepted.", "were accepted.") : `All of ${whose} were accepted.`];
	const what = [["retried", "to be tried again"], ["dead", "given up"], ["gone", "ended by 410"], ["failed", "not repeated"]].filter(([word]) => of(word)).map(([word, text]) => `${count(of(word))} ${text}`);
	return [`${count(all - good)} of ${whose} failed: ${what.join(", ")}.`, accepted];
}

// The chips of one filter count what the other one leaves.
function chipsOf(counts, { outcome: how, status: answered }) {
	const by = (key, wanted) => {
		const numbers = {};
		for (const one of counts) if (wanted(one)) numbers[one[key]] = (numbers[one[key]] ?? 0) + one.attempts;
		return numbers;
	};
	return [["outcome", "Outcome", entries(by("outcome", ({ status }) => !answered || status === answered), OUTCOMES)], ["status", "Status", entries(by("status", ({ outcome: one }) => !how || one === how), STATUSES)]];
}

// Returns the server's filters: a span of time begins so long before now.
function conditions(query) {
	const given = Object.fromEntries(KNOWN.filter((name) => query[name]).map((name) => [name, query[name]]));
	if (isBetween(query)) for (const bound of TIMES) if (query[bound]) given[bound] = new Date(query[bound]).toISOString();
	if (Number(query.span)) given.since = new Date(Date.now() - Number(query.span) * 1000).toISOString();
	return given;
}
