import { below, bytes, column, duration, empty, h, has, heading, pageLink, path, state, table, tabs, tag, vhostFilter, vhostPages } from "../lib/kit.js";
import { amqpPlace } from "./amqp_place.js";

const WARNINGS = { blocked: "Blocked: an alarm", blocking: "Blocking: an alarm", closing: "Closing" };
const COLUMNS = [
	column.named("name", "Connection", connectionLink),
	column.vhost({ optional: true }),
	column.text("user", "User"),
	column("state", "State", connectionState),
	column.count("channels", "Channels", { optional: true }),
	column("in", "From client", (row) => speed(row.recv_oct_details), { sort: "recv_oct_details.rate", end: true }),
	column("out", "To client", (row) => speed(row.send_oct_details), { sort: "send_oct_details.rate", end: true }),
	column.time("connected_at", "Since", { end: true, optional: true }),
	column("tls", "TLS", (row) => (row.ssl ? tag(row.ssl_protocol) : "no"), { hidden: true }),
	column("client", "Client", ({ client_properties: given }) => `${given.product ?? "–"} ${given.version ?? ""}`, { hidden: true }),
	column("heartbeat", "Heartbeat", (row) => (row.timeout ? duration(row.timeout) : "none"), { hidden: true, end: true }),
];
const TABS = [["Connections", "#/connections"], ["Channels", "#/channels"]];

export default async function connections({ signal }) {
	const place = await amqpPlace(signal);
	return [heading("Connections"), connectionTabs("Connections"), table({
		noun: "connection", columns: COLUMNS, signal, search: "Filter by address", sort: { by: "connected_at", reverse: true },
		filters: vhostFilter(), source: vhostPages("/connections", (vhost) => path`/vhosts/${vhost}/connections`),
		empty: () => empty(nobody("Nobody is connected", "You have no connection"), `AMQP 0-9-1 clients connect to ${place}. Requests over HTTP are not listed here.`, h("p", {}, h("a", { href: "#/welcome" }, "Send a first message"))),
	})];
}

// Without the tag monitoring only one's own are shown.
export function nobody(all, own) {
	return has("monitoring") ? all : `${own}; those of others are not shown to you`;
}

export function connectionTabs(current) {
	return tabs("Kinds", TABS, current);
}

// The name that the client gave itself says more than its address, which stands below it.
function connectionLink({ name, user_provided_name: given }) {
	return [pageLink(given || name, "/connections", name), given && below(name.split(" -> ")[0])];
}

export function connectionState({ state: now }) {
	return now === "running" ? state("Running", "good") : state(WARNINGS[now] ?? now, "warn");
}

export function speed(details) {
	return details ? `${bytes(details.rate)}/s` : "–";
}
