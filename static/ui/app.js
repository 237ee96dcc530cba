// Starts the pages: signs in, then shows what the address names.

import { on } from "./lib/api.js";
import { fill, h } from "./lib/dom.js";
import { startKeys } from "./lib/keys.js";
import { startLive, stopLive } from "./lib/live.js";
import { mountMessages, report } from "./lib/messages.js";
import { start, stop } from "./lib/router.js";
import { has, resume, session, signOut } from "./lib/session.js";
import { drawFrame, problem } from "./frame.js";
import { ROUTES } from "./routes.js";

const root = document.querySelector("#root");
let signedIn = false;

async function begin() {
	signedIn = true;
	if (!has("management")) return refuse();
	const frame = drawFrame(root, { signOut: ask });
	startLive();
	start(ROUTES, (load, context) => frame.show(load, context));
}

function refuse() {
	document.title = "No access · Warren";
	fill(root, h("main", { class: "sign-in" }, h("h1", {}, `${session.name} can't use these pages`),
		h("p", {}, "The user has no tag. An administrator can give it one: management is enough to see its own virtual hosts. AMQP and the hub's HTTP paths need no tag."),
		h("button", { class: "main", type: "button", onclick: () => signOut().then(ask, report) }, "Sign out")));
}

async function ask() {
	if (signedIn) {
		stop();
		stopLive();
		signedIn = false;
	}
	const { signInPage } = await import("./pages/sign_in.js");
	document.title = "Sign in · Warren";
	fill(root, signInPage(begin));
	root.querySelector("input").focus();
}

mountMessages();
startKeys();
on.signedOut = () => { if (signedIn) ask(); };
try {
	if (await resume()) await begin();
	else await ask();
} catch (error) {
	if (error.status === undefined) console.error(error);
	fill(root, h("main", { class: "sign-in" }, problem(error)));
}
