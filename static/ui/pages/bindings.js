// Bindings of a queue or an exchange: the list, a form that adds one, and removing.

import { act, asText, button, card, code, column, done, empty, form, h, pageLink, pages, path, post, remove, stack, table, tag } from "../lib/kit.js";
import { nameOf } from "./exchanges.js";
import { isOwn, subscriptionLink } from "./queues.js";

const DEFAULT = "amq.default";
const DIRECTIONS = { name: "direction", label: "Direction", options: [["", "From this exchange"], ["destination", "To this exchange"]] };
const TARGETS = [["q", "To a queue"], ["e", "To an exchange"], ["from", "From an exchange"]];
const MATCHES = [["x-match", "all or any, for exchanges of type headers"]];

export function bindings({ vhost, name, kind, signal }) {
	const where = path`/${kind}s/${vhost}/${name}/bindings`;
	const list = table({
		noun: "binding", signal, search: "Filter by name or key", sort: { by: "routing_key" }, key: (row) => `${row.source}/${row.destination_type}/${row.destination}/${row.properties_key}`,
		filters: kind === "queue" ? [] : [DIRECTIONS], columns: COLUMNS.filter((one) => kind !== "queue" || one.id !== "destination"),
		source: ({ direction = "source", ...query }, gone) => pages(kind === "queue" ? where : `${where}/${direction}`)(query, gone),
		empty: () => empty("Nothing is bound here", "A binding sends the messages of an exchange on, to a queue or to another exchange: all, or those that match its key or arguments."),
	});
	return stack(list, name !== DEFAULT && !isOwn(name) && adding(vhost, name, kind));
}

const COLUMNS = [
	column.named("source", "From", (row) => exchangeLink(row.vhost, row.source)),
	column("destination", "To", target, { sort: "destination", wide: true }),
	column("key", "Routing key", (row) => (row.routing_key ? code(row.routing_key) : "–"), { sort: "routing_key" }),
	column("arguments", "Arguments", (row) => argumentTags(row.arguments)),
	column.acts((row) => (isOwn(row.destination) ? h("small", {}, "the hub's") : row.source ? button("Unbind", () => unbind(row), "small danger") : h("small", {}, "always there"))),
];

function exchangeLink(vhost, name) {
	return pageLink(nameOf(name), "/exchanges", vhost, name || DEFAULT);
}

function target({ vhost, destination: name, destination_type: type, subscription }) {
	if (subscription) return subscriptionLink(subscription);
	return type === "queue" ? pageLink(name, "/queues", vhost, name) : [exchangeLink(vhost, name), " ", tag("exchange")];
}

export function argumentTags(table) {
	return Object.entries(table).map(([key, value]) => [tag(`${key}: ${asText(value)}`), " "]);
}

function unbind({ vhost, source, destination, destination_type: type, routing_key: key, properties_key: properties }) {
	return act({ title: `Unbind ${destination} from ${source}?`, act: `Remove the binding${key ? ` with key ${key}` : ""}`, text: `Messages that ${source} has got keep their places.` },
		() => remove(path`/bindings/${vhost}/e/${source}/${type[0]}/${destination}/${properties}`), `Unbound ${destination} from ${source}.`);
}

function adding(vhost, name, kind) {
	const ends = kind === "queue" ? [{ name: "other", label: "From the exchange", required: true }]
		: [{ name: "direction", label: "Direction", type: "select", options: TARGETS }, { name: "other", label: "Name of the queue or exchange", required: true }];
	const fields = [...ends, { name: "routing_key", label: "Routing key", help: "Topics: * is one word, # any number of them." },
		{ name: "arguments", label: "Arguments", type: "table", known: MATCHES, help: "For exchanges of type headers." }];
	return card("Add a binding", form({ name: `bind:${vhost}/${name}`, fields, button: "Bind", submit: async ({ direction = "from", other, routing_key, arguments: given }, element) => {
		const [source, letter, destination] = kind === "queue" ? [other, "q", name] : direction === "from" ? [other, "e", name] : [name, direction, other];
		await post(path`/bindings/${vhost}/e/${source}/${letter}/${destination}`, { routing_key, arguments: given });
		done(`Bound ${destination} to ${source}.`);
		element.reset();
	} }));
}
