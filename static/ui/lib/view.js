// What most pages have: heading, cards, tiles, facts, small tables, states, times.

import { h, patch } from "./dom.js";
import { ago, date, instant, momentOf } from "./format.js";
import { link } from "./router.js";

// The heading of a page: `list` is the link to the list that it is from, [text, href]; actions are buttons.
export function heading(title, { list, states = [], actions = [], about } = {}) {
	return h("div", { class: "heading" }, h("div", {},
		list && h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: list[1] }, list[0])),
		h("div", { class: "named" }, h("h1", {}, title), states), about && h("p", { class: "quiet" }, about)), h("div", { class: "actions" }, actions));
}

// A card: `title` is its words, or [words, what stands at the right], or null.
export function card(title, ...children) {
	const [words, beside] = [title].flat();
	return h("section", { class: "card" }, words && h("header", {}, h("h2", {}, words), beside), children);
}

// A card whose content reaches its edges; what stands beside the title is at the right.
export function section(title, beside, ...children) {
	return h("section", { class: "card flush" }, h("header", {}, h("h2", {}, title), beside), children);
}

export function side(...cards) {
	return h("div", { class: "grid wide-cells" }, cards);
}

export const quiet = (...children) => h("p", { class: "quiet" }, children);
export const below = (...children) => h("small", { class: "below" }, children);
export const code = (...children) => h("code", {}, children);

export function pageLink(text, ...place) {
	return h("a", { href: link(...place) }, text);
}

export function buttons(...children) {
	return h("div", { class: "buttons" }, children);
}

export function stack(...children) {
	return h("div", { class: "stack" }, children);
}

// Numbers side by side: [[label, figure, link or null, unit]].
export function tiles(entries) {
	return h("div", { class: "tiles" }, entries.map(([label, figure, href, unit]) => h(href ? "a" : "div", { class: "tile", href },
		h("span", { class: "label" }, label), h("span", { class: "figure" }, figure, unit ? h("span", { class: "unit" }, ` ${unit}`) : null))));
}

// Terms with what they are: [[term, value]]; those without a value are left out.
export function facts(entries) {
	return h("dl", { class: "facts" }, entries.filter(([, value]) => ![null, undefined, "", false].includes(value)).map(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

// A small table with a label. Columns are {label, end, ...} as those of lists; the first names its row.
export function grid(label, columns, rows) {
	const [first, ...rest] = columns;
	const all = [{ ...first, name: true }, ...rest];
	return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {},
		h("thead", {}, h("tr", {}, all.map((one) => headOf(one, one.label)))), h("tbody", {}, rows.map((cells) => rowOf(all, cells)))));
}

export function headOf(column, content, order) {
	return h("th", { scope: "col", class: classesOf(column), "aria-sort": order, title: column.help }, content || h("span", { class: "unseen" }, "Actions"));
}

// On a phone a row is a block, and each cell has its label.
export function rowOf(columns, cells, row = h("tr")) {
	return patch(row, cells.map((cell, at) => {
		const { name, label } = columns[at];
		return h(name ? "th" : "td", { class: classesOf(columns[at]), scope: name && "row", "data-label": label }, cell);
	}));
}

function classesOf(column) {
	return ["end", "name", "optional", "clip", "tight", "wide"].filter((one) => column[one]).join(" ") || null;
}

// A word with a shape: kind is good, warn, bad, info or empty.
export function state(text, kind = "") {
	return h("span", { class: `state ${kind}`.trim() }, text);
}

export function tag(text, title) {
	return h("span", { class: "tag", title }, text);
}

export function time(value) {
	if (value === null || value === undefined || value === "") return "–";
	return h("time", { datetime: new Date(instant(value)).toISOString(), title: date(value) }, ago(value));
}

// A time as the clock shows it, to the millisecond, where many are close together.
export function precise(value) {
	return h("time", { datetime: value, title: `${date(value)}, ${ago(value)}` }, momentOf(value));
}

export function meter(share, kind = "", label = "") {
	const bar = h("span");
	bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
	return h("span", { class: `meter ${kind}`, role: "img", "aria-label": label || `${Math.round(share * 100)} %` }, bar);
}

export function notice(kind, ...children) {
	return h("div", { class: `notice ${kind}` }, children);
}

export function empty(title, text, ...more) {
	return h("div", { class: "empty" }, h("h2", {}, title), text && h("p", {}, text), more);
}

// Tabs of a page as links: [[text, link]]; the current one is marked.
export function tabs(label, entries, current) {
	return h("nav", { class: "tabs", "aria-label": label }, entries.map(([text, href]) => h("a", { href, "aria-current": text === current ? "page" : null }, text)));
}

// A link to a URL of others, only for http and https: else its text, for no page may run what it has.
export function outside(url, text = "") {
	return /^https?:\/\//i.test(url ?? "") ? h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text || wrapped(url)) : text || (url ?? "");
}

export function bare(url) {
	return url.replace(/^https?:\/\//, "");
}

// A URL that wraps behind its slashes and dots.
export function wrapped(url) {
	return url.split(/(?<=[/?&=._-])/).flatMap((part, at) => (at ? [h("wbr"), part] : [part]));
}
