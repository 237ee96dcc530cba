// The list of users.

import { answer, button, column, done, FieldError, formDialog, go, h, heading, link, pageLink, pages, path, put, state, table, tag } from "../lib/kit.js";

export const TAGS = [
	["administrator", "Administrator: everything"], ["monitoring", "Monitoring: sees all virtual hosts"], ["policymaker", "Policymaker: changes policies"],
	["management", "Management: signs in here"], ["", "None: clients only"],
];
const COLUMNS = [
	column.named("name", "Name", (row) => pageLink(row.name, "/users", row.name)),
	column("tags", "Tags", (row) => (row.tags.length ? row.tags.map((text) => [tag(text), " "]) : "–")),
	column("vhosts", "May enter", ({ vhosts }) => (vhosts.length ? vhosts.map((name) => [h("a", { class: "tag", href: link("/vhosts", name) }, name), " "]) : state("No virtual host", "warn"))),
	column("login", "Password", (row) => (row.password_hash ? "Set" : state("None: can't log in by password", "info")), { optional: true }),
];

export default function users({ signal }) {
	const says = answer("Who may connect over AMQP and HTTP, and sign in here.");
	const source = async (query, gone) => says.of(await pages("/users")(query, gone), "user", ({ vhosts }) => !vhosts.length, Array(2).fill("may enter no virtual host"));
	return [heading("Users", { actions: [button("New user", add, "main")], about: says }), table({ noun: "user", signal, sort: { by: "name" }, source, columns: COLUMNS })];
}

export const PASSWORDS = [
	{ name: "password", label: "Password", type: "password", autocomplete: "new-password", required: true },
	{ name: "again", label: "Password again", type: "password", autocomplete: "new-password", required: true },
];
export function samePassword({ password, again }) {
	if (password !== again) throw new FieldError("again", "The passwords differ.");
	return password;
}

function add() {
	return formDialog("New user", {
		name: "new-user", button: "Create user",
		fields: [{ name: "name", label: "Name", required: true }, { name: "tags", label: "Role", type: "select", options: TAGS, value: "management" }, ...PASSWORDS],
		submit: async ({ name, tags, ...given }) => {
			await put(path`/users/${name}`, { password: samePassword(given), tags });
			done(`Created the user ${name}, who has no permissions yet.`);
			go(link("/users", name));
		},
	});
}
