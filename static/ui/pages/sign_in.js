// The sign-in page, and the form for the first administrator, to which a new server prints a link.

import { post } from "../lib/api.js";
import { fill, h, icon } from "../lib/dom.js";
import { FieldError, form } from "../lib/forms.js";
import { clearMessages } from "../lib/messages.js";
import { signIn } from "../lib/session.js";

const SETUP = "#/setup/";
const name = { name: "name", label: "User", required: true, autocomplete: "username", wide: true };
const password = { name: "password", label: "Password", type: "password", required: true, wide: true };

export function signInPage(begin) {
	clearMessages();
	const page = h("main", { class: "sign-in" });
	const show = () => fill(page, h("h1", { class: "brand" }, icon("tunnel"), "Warren"), ...(location.hash.startsWith(SETUP) ? setup(begin) : login(begin)));
	// A link that is pasted into this tab changes the hash alone, and loads no page.
	addEventListener("hashchange", function changed() {
		if (!page.isConnected) return removeEventListener("hashchange", changed);
		show();
		page.querySelector("input").focus();
	});
	show();
	return page;
}

function login(begin) {
	const fields = [name, { ...password, required: false, autocomplete: "current-password" }];
	return [
		h("section", { class: "card" }, form({ fields, button: "Sign in", submit: async (values) => {
			await signIn(values.name, values.password);
			await begin();
		} })),
		h("details", { class: "quiet" }, h("summary", {}, "A new server?"),
			h("p", {}, "A server without an administrator prints a link when it starts: in its terminal, or in the log of its container or service. Open the link to create the first administrator."),
			h("p", {}, "A server that was started with ", h("code", {}, "--dev"), " has the user ", h("code", {}, "guest"), " with the password ", h("code", {}, "guest"), ", for this machine only.")),
		h("p", { class: "quiet" }, h("a", { href: "docs/" }, "Documentation")),
	];
}

function setup(begin) {
	const fields = [
		name,
		{ ...password, autocomplete: "new-password" },
		{ ...password, name: "again", label: "Password again", autocomplete: "new-password" },
	];
	return [
		h("section", { class: "card" }, h("h2", {}, "The first administrator"), form({ fields, button: "Create and sign in", submit: async (values) => {
			if (values.password !== values.again) throw new FieldError("again", "The passwords differ.");
			await post("/warren/setup", { name: values.name, password: values.password, secret: location.hash.slice(SETUP.length) });
			history.replaceState(null, "", location.pathname);
			await signIn(values.name, values.password);
			await begin();
		} })),
		h("p", { class: "quiet" }, "An administrator may do everything, and adds other users. The link works once."),
	];
}
