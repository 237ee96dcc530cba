// The dialogs that make tokens and capability URLs, and show them once.

import { button, closing, command, FieldError, formDialog, h, HUB, icon, open, post, select, session, stack, vhostField } from "../lib/kit.js";

const KINDS = [["read", "Read messages of"], ["write", "Publish to"], ["look", "Look at, below /api"], ["manage", "Manage, below /api"], ["tunnel", "Enrol the tunnel"]];
const MOST = 20;
const isMessages = (kind) => kind === "read" || kind === "write";

export function scopeField() {
	const rows = h("div", { class: "stack" });
	const add = button([icon("plus"), "Another scope"], () => more(), "small");
	function more() {
		rows.append(scopeRow(() => { add.disabled = false; }, () => rows.children.length > 1));
		add.disabled = rows.children.length >= MOST;
	}
	more();
	const element = h("fieldset", { class: "stack" }, h("legend", {}, "It may"), rows,
		h("small", {}, "A name that ends in * stands for all names that begin so."), h("div", {}, add));
	return { name: "scopes", label: "Scopes", type: "own", wide: true, element, read: () => [...rows.children].map((row) => row.read()) };
}

function scopeRow(removed, may_go) {
	const kind = choice("What it may", KINDS);
	const type = choice("Kind", [["x", "exchange"], ["q", "queue"]]);
	const name = h("input", { "aria-label": "Name", autocomplete: "off", spellcheck: "false" });
	const vhost = choice("Virtual host", [["", "any virtual host"], ...session.vhosts]);
	const go = button(icon("close"), () => {
		if (!may_go()) return;
		row.remove();
		removed();
	}, "icon", { "aria-label": "Remove this scope" });
	const row = h("div", { class: "row" }, kind, type, name, vhost, go);
	const changed = () => {
		type.hidden = !isMessages(kind.value);
		vhost.hidden = kind.value === "tunnel" || session.vhosts.length < 2;
		vhost.options[0].hidden = isMessages(kind.value);
		if (isMessages(kind.value) && !vhost.value) vhost.value = session.vhosts.includes("/") ? "/" : session.vhosts[0];
		name.placeholder = isMessages(kind.value) ? "name, or orders.*" : kind.value === "tunnel" ? "label" : "queues/%2F/*, empty for all";
	};
	kind.addEventListener("change", changed);
	changed();
	row.read = () => scopeOf(kind.value, type.value, name.value.trim(), vhost.value);
	return row;
}

function scopeOf(kind, type, name, vhost) {
	if (name === "" && (isMessages(kind) || kind === "tunnel")) throw new FieldError("scopes", "Each scope needs a name; * stands for all.");
	if (isMessages(kind)) return { [kind]: `${type}/${name}`, vhost };
	if (kind === "tunnel") return { tunnel: name };
	return { manage: kind === "manage" ? "write" : "read", path: name || "*", ...(vhost ? { vhost } : {}) };
}

function choice(label, options) {
	return select(options, "", { "aria-label": label });
}

const TIMES = [["600", "10 minutes"], ["3600", "An hour"], ["86400", "A day"], ["604800", "A week"], ["2592000", "30 days"], ["31536000", "A year"]];

export async function newToken() {
	const scopes = scopeField();
	const made = await formDialog("New token", {
		button: "Create token", fields: [
			{ name: "name", label: "Name", required: true, help: "For people: what uses it." }, { name: "expires_in_s", label: "Ends after", type: "select", options: TIMES, value: "3600" }, scopes,
		],
		submit: async ({ name, expires_in_s, scopes: given }) => post("/hub/tokens", { name, scopes: given, expires_in_s: Number(expires_in_s) }),
		wide: true,
	});
	if (made) await once("The token", made.token, "It may do what it says until it ends. Send it as a header:", example(made));
}

function example({ token, scopes: [scope] }) {
	const bearer = `-H 'Authorization: Bearer ${token}'`;
	const at = (facet) => `${HUB}${(scope.vhost ?? "/") === "/" ? "" : `${encodeURIComponent(scope.vhost)}/`}${facet}/`;
	const named = (target) => `${target.slice(0, 2)}${encodeURIComponent(target.slice(2))}`;
	if (scope.read) return `curl -N ${bearer} '${at("stream")}${named(scope.read)}'`;
	if (scope.write) return `curl ${bearer} -d hello '${at("endpoint")}${named(scope.write)}'`;
	if (scope.tunnel) return `warren tunnel 8000 --label ${scope.tunnel.replace("*", "1")} --token ${token}`;
	return `curl ${bearer} '${HUB}api/${scope.path.replace(/\*$/, "") || "whoami"}'`;
}

export async function newUrl() {
	const made = await formDialog("New URL to publish to", {
		button: "Create URL", fields: [
			vhostField(), { name: "type", label: "Publishes to", type: "select", options: [["x", "An exchange"], ["q", "A queue"]] }, { name: "name", label: "Its name", required: true },
			{ name: "routing_key", label: "Routing key", help: "Empty: the sender says it as hub.topic.", when: (values) => values.type === "x" },
			{ name: "expires_in_s", label: "Ends after", type: "select", options: [["", "Never"], ...TIMES] }, { name: "note", label: "Note", help: "Who has it." },
		],
		submit: async ({ expires_in_s: after, routing_key: key, note, ...body }) => post("/hub/capabilities", { ...body, ...(after ? { expires_in_s: Number(after) } : {}), ...(key ? { routing_key: key } : {}), ...(note ? { note } : {}) }),
	});
	if (made) await once("The URL", made.url, "Give it to the sender only. It publishes with:", `curl -d hello '${made.url}'`);
}

function once(what, secret, text, line) {
	return open(`${what}, shown this once`, (close) => stack(h("p", {}, `Copy it now. Only its digest is stored, so ${session.name} can't see it again.`), command(secret), h("p", {}, text), command(line), closing(close, "I have copied it")), { wide: true });
}
