// One exchange: what comes in, where it goes, and a form that publishes to it.

import { act, attempt, button, card, command, count, counted, endpoint, facts, get, h, heading, history, link, path, quiet, quoted, rate, refresh, remove, session, side, stack, tabs, tiles, vhostTag, watch, windowOf } from "../lib/kit.js";
import { argumentTags, bindings } from "./bindings.js";
import { features, nameOf } from "./exchanges.js";
import { flow } from "./flow.js";
import { publishing } from "./publishing.js";
import { policyLink } from "./queue_overview.js";
import { isOwn } from "./queues.js";

const RATES = [["publish_in", "In", 1], ["publish_out", "Out", 2]];
const PICTURE_EVERY_S = 30; // with very many bindings it takes the server a while
const DEFAULT = "amq.default";
const TABS = [["", "Overview", overview], ["bindings", "Bindings", ({ vhost, name, signal }) => bindings({ vhost, name, kind: "exchange", signal })], ["publish", "Publish", ({ vhost, name }) => publishing({ vhost, exchange: name })]];

export default function exchange({ params: { vhost, name }, query, signal }) {
	const where = path`/exchanges/${vhost}/${name}`;
	const [, label, make] = TABS.find(([one]) => one === (query.tab ?? "")) ?? TABS[0];
	const entries = TABS.map(([id, text]) => [text, link("/exchanges", vhost, name, { tab: id })]);
	const fixed = name.startsWith("amq.") || isOwn(name);
	let tab = null;
	return watch((gone) => get(where, windowOf("msg_rates"), gone), (found) => {
		tab ??= make({ vhost, name, where, found, signal });
		return [
			heading(nameOf(name), { list: ["Exchanges", "#/exchanges"], states: vhostTag(vhost), actions: !fixed && button("Delete", () => attempt(() => erase(where, name)), "danger") }),
			tabs("Parts of the exchange", entries, label), tab.show ? tab.show(found) : tab,
		];
	}, signal);
}

async function erase(where, name) {
	const { total_count: number } = await get(`${where}/bindings/source`, { page: 1, page_size: 1 });
	const text = `Deleted with it: ${counted(number, "binding")}. Publishing to it fails from then on.`;
	await act({ act: `Delete the exchange ${name}`, text, typed: name, to: "#/exchanges" }, () => remove(where), `Deleted the exchange ${name}.`);
}

function overview({ vhost, name, where, signal }) {
	const picture = h("div");
	const chart = history("Messages", RATES, rate);
	const line = command(`curl -u ${quoted(session.name)} -d hello ${quoted(`${endpoint("endpoint", vhost, "x", name)}?hub.topic=KEY`)}`);
	refresh((gone) => flow(picture, { vhost, name, where, shown: nameOf(name) }, gone), signal, PICTURE_EVERY_S);
	return { show({ type, arguments: given, policy, effective_policy_definition: definition, message_stats: stats, ...found }) {
		chart.draw(stats);
		return stack(
			tiles([["In", rate(stats.publish_in_details.rate)], ["Out", rate(stats.publish_out_details.rate)], ["Published to it", count(stats.publish_in)], ["Copies to queues", count(stats.publish_out)]]),
			side(card(null, chart), card("Exchange",
				facts([["Type", type], ["Features", features({ arguments: given, ...found })], ["Arguments", Object.keys(given).length > 0 && argumentTags(given)], ["Policy", policy && policyLink(policy)], ["Definition", policy && argumentTags(definition)]]),
				name === DEFAULT ? quiet("Each queue is bound to it by its own name.") : [quiet("Publish a message from a shell:"), line])),
			card("What goes where", picture));
	} };
}
