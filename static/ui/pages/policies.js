// Policies and operator policies: arguments of queues and exchanges by pattern of their names.

import { address, button, code, column, done, dropButton, empty, formDialog, h, has, heading, link, notice, pages, path, put, state, table, tabs, vhostField } from "../lib/kit.js";
import { argumentTags } from "./bindings.js";
import { QUEUE_ARGUMENTS } from "./declare.js";

const KINDS = { policies: ["Policies", "policy", "policies"], operator: ["Operator policies", "operator policy", "operator policies"] };
const APPLY_TO = [["all", "Queues and exchanges"], ["queues", "Queues"], ["classic_queues", "Classic queues"], ["quorum_queues", "Quorum queues"], ["streams", "Streams"], ["exchanges", "Exchanges"]];
const NOT_IN_POLICIES = ["x-max-priority", "x-single-active-consumer"];
const KEYS = [...QUEUE_ARGUMENTS.filter(([name]) => !NOT_IN_POLICIES.includes(name)).map(([name, help]) => [name.replace(/^x-/, ""), help]), ["alternate-exchange", "Of exchanges: gets what no binding matches"]];
export const POLICY_TABS = [["Policies", "#/policies"], ["Operator policies", link("/policies", { kind: "operator" })], ["Limits", "#/limits"]];

export default function policies({ signal }) {
	const kind = address().query.kind === "operator" ? "operator" : "policies";
	const where = kind === "operator" ? "/operator-policies" : "/policies";
	const [label, one, many] = KINDS[kind];
	const bar = tabs("Kinds", POLICY_TABS, label);
	if (!has("policymaker")) return [heading(label), bar, notice("warn", state("Not permitted", "warn"), "Policies need the tag policymaker.")];
	const may_change = has(kind === "operator" ? "administrator" : "policymaker");
	const list = table({
		noun: [one, many], signal, sort: { by: "name" }, key: (row) => `${row.vhost}/${row.name}`, source: pages(where),
		columns: [
			column.text("name", "Name", { name: true }), column.vhost({ optional: true }),
			column("pattern", "Pattern", (row) => code(row.pattern)), column.text("apply-to", "Applies to", { sort: undefined, optional: true }),
			column("definition", "Definition", (row) => argumentTags(row.definition), { wide: true }), column.count("priority", "Priority", { optional: true }),
			column.acts((row) => may_change && h("div", { class: "actions" }, button("Change", () => change(where, one, row), "small"), dropButton("Delete", `the ${one} ${row.name}`, `${where}${path`/${row.vhost}/${row.name}`}`, { text: "What it gave to queues and exchanges no longer holds.", typed: row.name }))),
		],
		empty: () => empty(`No ${many}`, kind === "operator" ? "An operator policy sets limits that policies of users can't exceed." : "A policy gives queues and exchanges arguments by their names, also those that exist already."),
	});
	return [heading(label, { about: kind === "operator" ? "Limits that policies of users can't exceed." : "Arguments of queues and exchanges by their names. The highest priority that matches holds.", actions: may_change && button(`New ${one}`, () => change(where, one, null), "main") }), bar, list];
}

function change(where, kind, row) {
	return formDialog(row ? `Change the ${kind} ${row.name}` : `New ${kind}`, {
		name: row ? undefined : `new-${kind}`, button: row ? "Save" : `Create ${kind}`,
		fields: [
			...(row ? [] : [{ name: "name", label: "Name", required: true }, vhostField()]),
			{ name: "pattern", label: "Pattern", required: true, value: row?.pattern, placeholder: "^orders\\.", help: "A regular expression of names." },
			{ name: "apply_to", label: "Applies to", type: "select", options: APPLY_TO, value: row?.["apply-to"] ?? "all" }, { name: "priority", label: "Priority", type: "number", value: row?.priority ?? 0, help: "The highest that matches holds." },
			{ name: "definition", label: "Definition", type: "table", known: KEYS, value: row?.definition },
		],
		submit: async ({ name = row?.name, vhost = row?.vhost, pattern, apply_to, priority, definition }) => {
			await put(`${where}${path`/${vhost}/${name}`}`, { pattern, "apply-to": apply_to, priority: priority ?? 0, definition });
			done(`The ${kind} ${name} is in force.`);
		},
	});
}
