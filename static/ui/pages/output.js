// One output: its documents, sources and partners, and its settings.

import { below, button, buttons, card, closing, code, command, copyButton, done, dropButton, empty, facts, formDialog, get, grid, h, heading, notice, open, pageLink, path, post, session, side, stack, state, tag, time, watch } from "../lib/kit.js";
import { documentUrl, FORMATS } from "./feeds.js";
import { outputForm, outputProblem, sourceLine } from "./outputs.js";

const LABELS = { atom: "Atom", rss: "RSS", json: "JSON Feed" };
const PARTNERS = [{ label: "Partner" }, { label: "Made" }, { label: "", end: true }];

export default async function output({ params: { vhost, name }, signal }) {
	const where = path`/hub/outputs/${name}`;
	const query = { vhost };
	const settings = outputForm(await get(where, query, signal), () => done(`Saved the output ${name}.`));
	const text = "Its items and tokens go with it, and its documents answer 410 from then on.";
	const end = dropButton("Delete", `the output ${name}`, where, { text, typed: name, to: "#/outputs", kind: "danger", query });

	async function load(gone) {
		const now = await get(where, query, gone);
		return { ...now, tokens: now.visibility === "token" ? await get(`${where}/tokens`, query, gone) : null };
	}
	return watch(load, (now) => {
		const problem = outputProblem(now);
		const url = documentUrl(vhost, name, "json");
		return [
			heading(now.title || name, { list: ["Outputs", "#/outputs"], states: now.tokens && tag("token"), actions: end }), problem && notice("warn", state("Problem", "warn"), h("span", {}, problem)),
			side(card("Documents", facts(documents(now, vhost))), card("Sources", h("ul", { class: "stack" }, now.sources.map((one) => source(one, vhost))))),
			now.tokens && card("Partners", partners(now.tokens, where, query), buttons(button("Make a token", () => makeToken(where, query)))),
			card("Settings", settings), card("From a terminal", command(now.tokens ? `curl -u ${session.name} ${url}` : `curl ${url}`)),
		];
	}, signal);
}

function documents(now, vhost) {
	const url = (format) => documentUrl(vhost, now.name, format);
	return [...FORMATS.map((format) => [LABELS[format], h("a", { href: url(format), target: "_blank", rel: "noopener noreferrer" }, url(format))]),
		["Read by", now.tokens ? "partners with a token, and its owner" : "everybody"], ["Made", time(now.made_at)], ["Changed", time(now.changed_at)], ["Owner", now.owner], ["Virtual host", vhost]];
}

function source(one, vhost) {
	const [page, name] = one.feed ? ["/feeds", one.feed] : one.stream ? ["/queues", one.stream] : ["/exchanges", one.exchange];
	return h("li", {}, one.problem ? state("Problem", "warn") : state("Bound", "good"), " ", pageLink(code(sourceLine(one)), page, vhost, name), one.problem && below(one.problem));
}

function partners(found, where, query) {
	if (!found.length) return empty("No partners yet", "A token is the right to read the documents of this output. It is shown once, and can be revoked.");
	const text = "The partner can't read the documents any more, and subscriptions made with it end.";
	return grid("Partners", PARTNERS, found.map(({ id, name, made_at: at }) => [name, time(at),
		dropButton("Revoke", `the token of ${name}`, where + path`/tokens/${id}`, { text, query })]));
}

async function makeToken(where, query) {
	const made = await formDialog("Make a token", { button: "Make token", fields: [{ name: "name", label: "Partner", required: true, wide: true, help: "For people: whose token it is." }], submit: (body) => post(`${where}/tokens`, body, query) });
	if (!made) return;
	await open(`Token of ${made.name}`, (close) => stack(h("p", {}, "It is shown now and never again. Send the partner one of these addresses:"),
		FORMATS.map((format) => command(made.documents[format])), buttons(copyButton(() => made.token, "Copy the token")), closing(close)));
}
