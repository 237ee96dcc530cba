// The list of outputs: feeds that are made here of feeds, exchanges and streams.

import { answer, below, button, code, column, done, empty, FieldError, form, go, h, heading, link, open, pageLink, pages, path, put, state, table, tabs, vhostField, vhostFilter } from "../lib/kit.js";
import { documentLinks, FEED_TABS } from "./feeds.js";

const HOUR_S = 3600;
const LISTS = [["words", "any", "Any of these words"], ["words", "none", "None of these words"], ["categories", "any", "Any of these categories"], ["languages", "any", "Any of these languages"]];
const WAYS = { feed: (name) => ({ feed: name }), stream: (name) => ({ stream: name }), exchange: (name, key) => (key === undefined ? { exchange: name } : { exchange: name, routing_key: key }) };

export const listed = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

// A source in one line: "feed news", "exchange alerts road.#", "stream prices".
export function sourceLine({ feed, exchange, routing_key, stream }) {
	return feed ? `feed ${feed}` : stream ? `stream ${stream}` : `exchange ${exchange}${routing_key === undefined ? "" : ` ${routing_key}`}`;
}

function sources(text) {
	return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
		const [way, name, key, more] = line.split(/\s+/);
		if (!WAYS[way] || !name || more !== undefined || (key !== undefined && way !== "exchange")) throw new FieldError("sources", `"${line}" is no source: write feed NAME, exchange NAME KEY, or stream NAME.`);
		return WAYS[way](name, key);
	});
}

// `output` is the one to change, null for a new one; `saved(vhost, name)` is called then.
export function outputForm(output, saved, cancel) {
	const filter = output?.filter ?? {};
	const place = output ? [] : [{ name: "name", label: "Name", required: true, help: "Part of its documents' addresses." }, vhostField()];
	return form({
		name: `output:${output ? `${output.vhost}/${output.name}` : ""}`, button: output ? "Save output" : "Create output", cancel,
		fields: [
			...place, { name: "title", label: "Title", value: output?.title, wide: Boolean(output) },
			{ name: "sources", label: "Sources, one a line", type: "textarea", required: true, placeholder: "feed news\nexchange alerts road.#\nstream prices", value: output?.sources.map(sourceLine).join("\n"), help: "feed NAME, exchange NAME KEY, or stream NAME." },
			...LISTS.map(([member, way, label]) => ({ name: `${member}_${way}`, label, placeholder: way === "none" ? "" : "all", value: filter[member]?.[way]?.join(", "), help: "Separated by commas." })),
			{ name: "max_age_h", label: "Not older than, in hours", type: "number", value: filter.max_age_s ? filter.max_age_s / HOUR_S : "" },
			{ name: "visibility", label: "Documents are read by", type: "select", options: [["public", "Everybody"], ["token", "Partners with a token"]], value: output?.visibility },
			{ name: "drop_near_duplicates", label: "Leave out what the job near-duplicates has found", type: "check", value: filter.drop_near_duplicates, wide: true },
			{ name: "transform", label: "Transform, step by step", type: "json", value: output?.transform.length ? output.transform : "", placeholder: '[{"cut": "headline and summary"}, {"title": "{feed}: {title}"}]', help: "A JSON list of cut, max_characters, title, rename, remove and add." },
			{ name: "description", label: "Description", wide: true, value: output?.description },
		],
		submit: async (values) => {
			const { name = output?.name, vhost = output?.vhost, title, description, visibility, transform } = values;
			const steps = Array.isArray(transform) ? transform : Object.keys(transform).length ? [transform] : [];
			const body = { title, description, visibility, transform: steps, sources: sources(values.sources), filter: wanted(filter, values) };
			await put(path`/hub/outputs/${name}`, body, { vhost });
			saved(vhost, name);
		},
	});
}

// The filter with what the form has; members that the form lacks stay.
function wanted(filter, values) {
	const found = structuredClone(filter);
	for (const [member, way] of LISTS) {
		const terms = listed(values[`${member}_${way}`]);
		if (terms.length || found[member]?.[way]) found[member] = { ...found[member], [way]: terms };
	}
	found.drop_near_duplicates = values.drop_near_duplicates;
	if (values.max_age_h) found.max_age_s = Math.round(values.max_age_h * HOUR_S);
	else delete found.max_age_s;
	return found;
}

const SOURCES = 3;
const COLUMNS = [
	column("name", "Name", (row) => [pageLink(row.name, "/outputs", row.vhost, row.name), row.title !== row.name && below(row.title)], { name: true }),
	column.vhost({ sort: undefined, hidden: true }),
	column("state", "State", (row) => (outputProblem(row) ? state("Problem", "warn") : state("OK", "good"))),
	column("sources", "Sources", ({ sources }) => [sources.slice(0, SOURCES).map((one) => h("div", {}, code(sourceLine(one)))), sources.length > SOURCES && h("small", {}, `and ${sources.length - SOURCES} more`)], { optional: true }),
	column("visibility", "Read by", (row) => (row.visibility === "token" ? "Partners" : "Everybody"), { optional: true }),
	column("documents", "Documents", (row) => documentLinks(row.vhost, row.name)),
	column.text("owner", "Owner", { sort: undefined, hidden: true }),
	column.time("changed_at", "Changed", { sort: undefined, optional: true }),
];

export function outputProblem({ notice, sources }) {
	return notice || sources.find((one) => one.problem)?.problem || "";
}

export default function outputs({ signal }) {
	const says = answer("Feeds that this hub makes, in three formats each.");
	const create = () => open("New output", (close) => outputForm(null, (vhost, name) => {
		close(true);
		done(`Created the output ${name}.`);
		go(link("/outputs", vhost, name));
	}, () => close(false)), { wide: true });
	const list = table({
		noun: "output", columns: COLUMNS, signal, key: (row) => `${row.vhost}/${row.name}`, filters: vhostFilter(), search: "Filter by name or title",
		source: async ({ page, page_size, name, vhost }, gone) => says.of(await pages("/hub/outputs")({ page, page_size, search: name, vhost }, gone), "output", outputProblem, ["has a problem", "have problems"], "all well"),
		empty: () => empty("No outputs yet", "An output is a feed of your own, as Atom, RSS and JSON Feed: of several feeds, of an exchange, of a stream, filtered and cut as you like, for everybody or for partners with a token.", button("Create the first output", create, "main")),
	});
	return [heading("Outputs", { about: says, actions: [button("New output", create, "main")] }), tabs("Kinds", FEED_TABS, "Outputs"), list];
}
