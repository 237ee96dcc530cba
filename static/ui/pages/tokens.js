// Tokens of programs and pages, and URLs whose holder may publish: both are shown once.

import { answer, button, column, dropButton, empty, h, heading, instant, link, pageLink, pages, path, state, table, tabs, tag, time } from "../lib/kit.js";
import { newToken, newUrl } from "./token_forms.js";

const SOON_S = 86_400;
const EVERY_S = 15;
const TABS = [["Tokens", "#/tokens"], ["URLs to publish to", link("/tokens", { tab: "urls" })]];
const TOKENS = [
	column.text("name", "Name", { name: true }),
	column("scopes", "May", (row) => row.scopes.map((scope) => h("div", {}, words(scope))), { wide: true }),
	column.text("owner", "Owner", { optional: true }),
	column("used", "Last used", (row) => (row.last_used_at ? time(row.last_used_at) : state("Never used")), { sort: "last_used_at" }),
	column("expires", "Ends", ends, { sort: "expires_at" }), column.time("made_at", "Made", { optional: true }),
	column.acts((row) => dropButton("Revoke", `the token ${row.name}`, path`/hub/tokens/${row.id}`, { text: "Programs that use it are refused from now on, and streams that were opened with it end." })),
];
const URLS = [
	column.named("name", "Publishes to", (row) => pageLink(row.name, row.type === "q" ? "/queues" : "/exchanges", row.vhost, row.name)),
	column("key", "Routing key", (row) => (row.routing_key ? tag(row.routing_key) : h("span", { class: "quiet" }, "as the sender says"))),
	column.text("note", "Note", { sort: undefined }), column.text("owner", "Owner", { optional: true }), column.vhost({ optional: true }),
	column("expires", "Ends", ends, { sort: "expires_at" }), column.time("made_at", "Made", { optional: true }),
	column.acts((row) => dropButton("Revoke", `the URL for ${row.name}`, path`/hub/capabilities/${row.id}`, { text: "Whoever has the URL is refused from now on." })),
];

export default function tokens({ query, signal }) {
	const says = answer(query.tab === "urls" ? "Who has such a URL may publish to what it names, and nothing else." : "A token acts as its owner, with the owner's current permissions.");
	const source = (where, one) => async (asked, gone) => says.of(await pages(where)(asked, gone), one, endsSoon, ["ends within a day", "end within a day"]);
	const list = (options) => table({ signal, sort: { by: "name" }, key: (row) => row.id, every_s: EVERY_S, ...options });
	if (query.tab === "urls") {
		return [heading("URLs to publish to", { about: says, actions: button("New URL", newUrl, "main") }), tabs("Kinds", TABS, TABS[1][0]),
			list({ noun: "URL", source: source("/hub/capabilities", "URL"), columns: URLS,
				empty: () => empty("No URL yet", "An unguessable URL lets somebody without a user publish to one exchange or queue, such as the webhooks of another service, or another hub.") })];
	}
	return [heading("Tokens", { about: says, actions: button("New token", newToken, "main") }), tabs("Kinds", TABS, "Tokens"),
		list({ noun: "token", source: source("/hub/tokens", "token"), columns: TOKENS,
			empty: () => empty("No token yet", "A token lets a program or a web page do little, for a short time, without a password: read one exchange, publish to one queue, or manage what a path names.") })];
}

const endsSoon = ({ expires_at: at }) => Boolean(at) && instant(at) - Date.now() < SOON_S * 1000;

function ends(row) {
	if (!row.expires_at) return "Never";
	return endsSoon(row) ? state(time(row.expires_at), "warn") : time(row.expires_at);
}

function words(scope) {
	if (scope.tunnel !== undefined) return ["enrol the tunnel ", tag(scope.tunnel)];
	const vhost = scope.vhost && scope.vhost !== "/" ? ` of ${scope.vhost}` : "";
	if (scope.manage !== undefined) return [scope.manage === "write" ? "manage " : "look at ", tag(`/api/${scope.path}`), vhost];
	const [verb, target] = scope.read === undefined ? ["publish to ", scope.write] : ["read ", scope.read];
	return [verb, target.startsWith("q/") ? "queue " : "exchange ", tag(target.slice(2)), vhost];
}
