// Makes elements. Text is always a text node: no name of a user's can become markup.

const SVG = "http://www.w3.org/2000/svg";

// What `h` takes as listeners, and `patch` takes over.
const LISTENERS = ["onchange", "onclick", "oninput", "onkeydown", "onsubmit", "ontoggle"];

// Returns an element. `on...` attributes are listeners; false, null and undefined leave one out.
export function h(name, attributes = {}, ...children) {
	return dressed(document.createElement(name), attributes, children);
}

export function button(text, onclick, kind, more) {
	return h("button", { type: "button", class: kind, onclick, ...more }, text);
}

export function svg(name, attributes = {}, ...children) {
	return dressed(document.createElementNS(SVG, name), attributes, children);
}

function dressed(element, attributes, children) {
	for (const [key, value] of Object.entries(attributes)) {
		if (value === false || value === null || value === undefined) continue;
		if (key.startsWith("on") || key === "value" || key === "checked") element[key] = value;
		else element.setAttribute(key, value === true ? "" : value);
	}
	element.append(...flat(children));
	return element;
}

export function fill(element, ...children) {
	element.replaceChildren(...flat(children).map(settled));
	return element;
}

// What is left out keeps its place, so that `patch` finds its neighbours again. What is on the page already
// stays there until what it was put into is on the page too: a mark stands for it.
function flat(children) {
	return children.flat(Infinity).map((one) => (one === null || one === undefined || one === false ? document.createComment("") : one.isConnected ? markOf(one) : one));
}

function markOf(node) {
	return Object.assign(document.createComment(""), { stands_for: node });
}

function settled(node) {
	if (node.stands_for) return node.stands_for;
	for (const child of node.childNodes ?? []) {
		const found = settled(child);
		if (found !== child) child.replaceWith(found);
	}
	return node;
}

// Draws new contents. An element that stays of its kind stays itself, and takes over the attributes,
// listeners and contents of the new one: so focus, selection and what was typed stay in it.
export function patch(element, ...children) {
	return become(element, flat(children).map((one) => (one instanceof Node ? one : document.createTextNode(one))));
}

function become(element, nodes) {
	nodes.forEach((node, at) => {
		const now = element.childNodes[at];
		if (!now) element.append(settled(node));
		else if (!takesOver(now, node)) now.replaceWith(settled(node));
	});
	while (element.childNodes.length > nodes.length) element.lastChild.remove();
	return element;
}

// Returns whether `now` is what `next` is meant to be. Components draw themselves, so they are never taken over.
function takesOver(now, next) {
	if (next.stands_for) return next.stands_for === now;
	if (now.nodeName !== next.nodeName || next.localName?.includes("-") || next.localName === "form") return false;
	if (next instanceof CharacterData) {
		if (now.data !== next.data) now.data = next.data;
		return true;
	}
	for (const name of new Set([...now.getAttributeNames(), ...next.getAttributeNames()])) takeAttribute(name, now, next);
	for (const name of LISTENERS) now[name] = next[name];
	if ("checked" in next) now.checked = next.checked;
	become(now, [...next.childNodes]);
	return true;
}

function takeAttribute(name, now, next) {
	const value = next.getAttribute(name);
	if (value === now.getAttribute(name) || name === "open") return; // what the user has opened stays open
	if (name === "style") now.style.cssText = next.style.cssText; // the policy permits no attribute
	else if (value === null) now.removeAttribute(name);
	else now.setAttribute(name, value);
}

const ICONS = {
	overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z",
	queue: "M4 6h16M4 12h16M4 18h10",
	exchange: "M4 8h13l-3-3M20 16H7l3 3",
	connection: "M9 7V3M15 7V3M7 7h10v4a5 5 0 0 1-10 0zM12 16v5",
	channel: "M3 8c3-4 6 4 9 0s6 4 9 0M3 16c3-4 6 4 9 0s6 4 9 0",
	subscription: "M18 8a6 6 0 1 0-12 0c0 7-3 7-3 9h18c0-2-3-2-3-9M10 21h4",
	delivery: "M21 3 10 14M21 3l-7 18-4-7-7-4z",
	dead: "M12 8v5M12 17h.01M10 3.8 2.5 18a2 2 0 0 0 1.8 3h15.4a2 2 0 0 0 1.8-3L14 3.8a2.3 2.3 0 0 0-4 0z",
	upstream: "M4 19h16M12 15V4M7 9l5-5 5 5",
	feed: "M5 19h.01M5 12a7 7 0 0 1 7 7M5 5a14 14 0 0 1 14 14",
	tunnel: "M3 20v-6a9 9 0 0 1 18 0v6M8 20v-5a4 4 0 0 1 8 0v5",
	console: "M4 5h16v14H4zM8 10l3 2-3 3M13 15h4",
	pipeline: "M4 19V9M10 19V5M16 19v-7M21 19H3",
	user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 21a8 8 0 0 1 16 0",
	vhost: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
	policy: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6zM9 12l2 2 4-4",
	token: "M15 7a4 4 0 1 1-3.5 6L8 16.5V19H5v-3l6-6A4 4 0 0 1 15 7z",
	definitions: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M14 3v5h5",
	node: "M5 5h14v14H5zM9 9h6v6H9zM9 2v3M15 2v3M9 19v3M15 19v3M2 9h3M2 15h3M19 9h3M19 15h3",
	log: "M5 4h14v16H5zM8 8h8M8 12h8M8 16h5",
	docs: "M4 5a3 3 0 0 1 3-2h5v16H7a3 3 0 0 0-3 2zM20 5a3 3 0 0 0-3-2h-5v16h5a3 3 0 0 1 3 2z",
	copy: "M9 9h11v11H9zM5 15H4V4h11v1",
	search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13M15.5 15.5 21 21",
	more: "M5 12h.01M12 12h.01M19 12h.01",
	menu: "M4 7h16M4 12h16M4 17h16",
	close: "M6 6l12 12M18 6 6 18",
	plus: "M12 5v14M5 12h14",
};

export function icon(name) {
	const look = { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": "1.8", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" };
	return svg("svg", look, svg("path", { d: ICONS[name] }));
}
