import { button, column, heading, pageLink, path, table, tag, vhostFilter, vhostPages } from "../lib/kit.js";
import { declareExchange } from "./declare.js";
import { kindTabs, OWN_FILTER, withoutOwn } from "./queues.js";

const speed = (direction) => `message_stats.publish_${direction}_details.rate`;
const COLUMNS = [
	column.named("name", "Name", (row) => pageLink(nameOf(row.name), "/exchanges", row.vhost, row.name || "amq.default")),
	column.vhost({ optional: true }),
	column.text("type", "Type"),
	column("features", "Features", features, { optional: true }),
	column.rate(speed("in"), "In", { help: "Messages published to it" }),
	column.rate(speed("out"), "Out", { help: "Copies that queues got from it" }),
	column.text("policy", "Policy", { hidden: true }),
];

export default function exchanges({ signal }) {
	const list = table({
		noun: "exchange", columns: COLUMNS, signal, sort: { by: speed("in"), reverse: true }, key: (row) => `${row.vhost}/${row.name}`,
		filters: [OWN_FILTER, ...vhostFilter()], source: withoutOwn(vhostPages("/exchanges", (vhost) => path`/exchanges/${vhost}`)),
	});
	return [heading("Exchanges", { actions: [button("New exchange", declareExchange, "main")] }), kindTabs("Exchanges", list), list];
}

export function nameOf(name) {
	return name === "" || name === "amq.default" ? "(default exchange)" : name;
}

export function features(row) {
	const found = [row.durable ? "durable" : "transient", row.auto_delete && "auto-delete", row.internal && "internal", row.arguments["alternate-exchange"] !== undefined && "alternate"];
	return found.filter(Boolean).map((text) => [tag(text), " "]);
}
