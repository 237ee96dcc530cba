// Pages and feeds of other sites that callbacks follow, and subscriptions of this hub at other hubs.

import { answer, attempt, below, button, column, done, dropButton, empty, formDialog, get, h, has, heading, outside, paged, pageLink, pages, path, post, put, state, table, tabs, tag, time, vhostField } from "../lib/kit.js";

const TABS = [["Topics", "#/topics"], ["Upstreams", "#/topics?tab=upstreams"]];
const STATES = { discovering: ["Looks for its hub"], pending: ["Waits for its hub"], active: ["Active", "good"], failed: ["Failed", "bad"], denied: ["Denied", "bad"], ending: ["Ends"] };
const KINDS = [["x", "An exchange"], ["q", "A queue"]];
const TOPICS = [
	column("url", "Topic", (row) => outside(row.url), { name: true }), column.count("subscribers", "Subscribers", { sort: undefined }),
	column("state", "State", fetched, { wide: true }), column.time("changed_at", "Changed", { sort: undefined, optional: true }),
	column("due", "Next fetch", (row) => (row.due_at ? time(row.due_at) : h("span", { class: "quiet" }, "when it is pinged")), { optional: true }),
	column.acts((row) => button("Fetch now", () => attempt(async () => {
		await post("/hub/topics/ping", { url: row.url });
		done(`${row.url} is fetched now.`);
	}), "small", { "aria-label": `Fetch ${row.url} now` })),
];
const UPSTREAMS = [
	column.text("name", "Name", { name: true }), column.vhost({ hidden: true }),
	column("url", "Follows", (row) => outside(row.url), { sort: "url", wide: true }),
	column("sink", "Publishes to", ({ vhost, sink, routing_key: key }) => [pageLink(sink.name, sink.type === "q" ? "/queues" : "/exchanges", vhost, sink.name), " ", key && tag(key, "Routing key")]),
	column("state", "State", (row) => [state(...STATES[row.status]), row.reason && below(row.reason)], { sort: "status", wide: true }),
	column.time("expires_at", "Lease ends", { optional: true }), column.text("owner", "Owner", { hidden: true }),
	column.acts((row) => dropButton("End", `the upstream ${row.name}`, path`/hub/upstreams/${row.vhost}/${row.name}`, { text: `The hub is told to send nothing more. What it has sent stays in ${row.sink.name}.` })),
];

export default function topics({ query, signal }) {
	const sees = has("administrator");
	const isTopics = sees && query.tab !== "upstreams";
	const says = answer(isTopics ? "Pages and feeds of other sites that are fetched for the callbacks subscribed to them." : "This hub's own subscriptions at other hubs, whose content becomes messages here.");
	const [[shown]] = isTopics ? TABS : TABS.slice(1);
	return [
		heading(shown, { about: says, actions: isTopics ? [] : [button("New upstream", newUpstream, "main")] }),
		sees && tabs("Kinds", TABS, shown), isTopics ? topicTable(signal, says) : upstreamTable(signal, says),
	];
}

function topicTable(signal, says) {
	return table({
		noun: "topic", signal, search: null, key: (row) => row.url, columns: TOPICS,
		source: async ({ page, page_size }, gone) => says.of(paged(await get("/hub/topics", { page, page_size }, gone)), "topic", (one) => one.error, Array(2).fill("could not be fetched"), "all well"),
		empty: () => empty("Nobody follows a page of another site", "Whoever subscribes at /hub to a URL elsewhere gets its content when it changes; it is listed here then."),
	});
}

function upstreamTable(signal, says) {
	return table({
		noun: "upstream", signal, sort: { by: "name" }, key: (row) => `${row.vhost} ${row.name}`, columns: UPSTREAMS,
		source: async (query, gone) => says.of(await pages("/hub/upstreams")(query, gone), "upstream", (one) => STATES[one.status][1] === "bad", ["gets nothing", "get nothing"], "all well"),
		empty: () => empty("No upstream yet", "An upstream subscribes at another WebSub hub and publishes what it sends to an exchange or queue here.", button("New upstream", newUpstream, "main")),
	});
}

function fetched({ error, notice, failures, checked_at: at }) {
	if (error) return [state(failures > 1 ? `Failed ${failures} times` : "Failed", "bad"), below(error)];
	return [at ? ["Fetched ", time(at)] : state("Not fetched yet"), notice && below(notice)];
}

function newUpstream() {
	return formDialog("New upstream", {
		name: "new-upstream", button: "Subscribe", wide: true, submit: subscribe,
		fields: [
			{ name: "url", label: "Topic", type: "url", required: true, wide: true, placeholder: "https://example.org/feed", help: "The page or feed; it names its hub." },
			{ name: "name", label: "Name", required: true }, vhostField(),
			{ name: "type", label: "Publish to", type: "select", options: KINDS }, { name: "sink", label: "Its name", required: true },
			{ name: "routing_key", label: "Routing key", placeholder: "the topic's URL", when: ({ type }) => type === "x" },
			{ name: "hub", label: "Hub", type: "url", help: "For topics that name none." },
			{ name: "username", label: "User there" }, { name: "password", label: "Password there", type: "password" },
		],
	});
}

async function subscribe({ name, vhost, type, sink, ...more }) {
	const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value));
	await put(path`/hub/upstreams/${vhost}/${name}`, { sink: { type, name: sink }, ...given });
	done(`Added the upstream ${name}: its hub is asked now.`);
}
