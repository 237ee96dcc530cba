// Tunnels: public URLs for programs behind a firewall.

import { answer, card, code, column, command, counted, cut, dropButton, empty, get, grid, h, has, heading, HUB, outside, patch, path, quiet, quoted, section, session, state, table, time } from "../lib/kit.js";

const COLUMNS = [
	column.named("label", "Label", (row) => [row.label, h("div", {}, outside(row.url))]),
	column("state", "State", ({ waiting_polls: polls }) => (polls ? state(polls === 1 ? "1 poll waits" : `${polls} polls wait`, "good") : state("No poll waits", "warn")), { sort: "waiting_polls", help: "Requests of the program that wait for something to answer" }),
	column.count("requests", "Requests", { optional: true, help: "Passed to the program since the server's start" }),
	column.time("since", "Since", { optional: true }),
	column("owner", "Owner", (row) => row.owner || "anonymous", { sort: "owner", optional: true }),
	column.acts(close),
];
const BLOCKED = [{ label: "Label" }, { label: "Owner" }, { label: "Until" }, { label: "", end: true }];

export default function tunnels({ signal }) {
	const line = `WARREN_PASSWORD=SECRET warren tunnel 8000 --url ${HUB.slice(0, -1)} --user ${quoted(session.name)}`;
	const blocked = h("div");
	const says = answer("Public URLs for programs behind a firewall.");
	const list = table({
		noun: "tunnel", signal, sort: { by: "label" }, search: "Filter by label", key: (row) => row.label, columns: COLUMNS,
		source: async (query, gone) => {
			const found = await get("/hub/tunnels", {}, gone);
			patch(blocked, found.blocked.length > 0 && section("Blocked labels", null, grid("Blocked labels", BLOCKED, found.blocked.map(blockedRow))));
			const all = found.tunnels;
			const calls = all.reduce((sum, { requests }) => sum + requests, 0);
			says.of({ items: all, total: all.length }, "tunnel", (one) => !one.waiting_polls, ["has no program that waits", "have no program that waits"], `${counted(calls, "request")} passed on`);
			return cut(all, query, (row) => row.label);
		},
		empty: () => empty("No tunnels", "A tunnel gives a web server on your own machine a public address, as long as a program there asks for requests. It can be the callback of a subscription, too."),
	});
	return [heading("Tunnels", { about: says }), list, blocked,
		card("Open one", h("p", {}, "This gives the web server at port 8000 of your machine an address, and prints each request. Put your password in the place of SECRET."), command(line),
			quiet("In a web page or in Node, ", code("serve"), " of ", code("/js/warren.js"), " does the same. ", h("a", { href: "docs/tunnels" }, "Documentation")))];
}

function close({ label, owner }) {
	const blocks = owner && owner !== session.name ? " For a day nobody can enrol the label, and its owner no new one." : "";
	return dropButton("Close", `the tunnel ${label}`, path`/hub/tunnels/${label}`, { text: `Its address answers 410 from then on, and its program is told. Subscriptions whose callback is there end.${blocks}` });
}

function blockedRow({ label, owner, until }) {
	const text = `${owner || "Anybody"} may enrol it again.`;
	return [label, owner || "anonymous", time(until), has("administrator") && dropButton("Unblock", `the label ${label}`, path`/hub/tunnels/${label}`, { text, safe: true, kind: "small", query: { block_s: 0 } })];
}
