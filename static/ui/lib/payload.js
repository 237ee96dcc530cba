// <warren-payload>: the body of a message as text, JSON or hex. It is shown, never run.

import { button, fill, h } from "./dom.js";
import { bytes, counted } from "./format.js";
import { copyButton } from "./command.js";

const HEX_LIMIT_BYTES = 4096;

class Payload extends HTMLElement {
	// `payload` with `encoding` "string" or "base64"; `size` in bytes where only the beginning is here.
	begin({ payload, encoding = "string", size, label = "Payload" }) {
		const octets = encoding === "base64" ? Uint8Array.from(atob(payload), (one) => one.charCodeAt(0)) : new TextEncoder().encode(payload);
		const views = { Text: () => textOf(octets), Hex: () => hex(octets) };
		const json = jsonOf(octets);
		if (json !== undefined) Object.assign(views, { JSON: () => json });
		const shown = h("pre", { tabindex: "0", "aria-label": label });
		const choose = (name) => {
			shown.textContent = views[name]();
			shown.classList.toggle("hex", name === "Hex");
			this.querySelectorAll("[role=tab]").forEach((one) => one.setAttribute("aria-selected", String(one.textContent === name)));
		};
		const note = size > octets.length ? `first ${bytes(octets.length)} of ${bytes(size)}` : bytes(octets.length);
		const names = ["JSON", "Text", "Hex"].filter((name) => name in views);
		fill(this, h("div", { class: "tools" }, h("div", { class: "tabs", role: "tablist", "aria-label": `${label} as` }, names.map((name) => button(name, () => choose(name), null, { role: "tab" }))),
			h("span", { class: "quiet" }, note), h("div", { class: "end" }, copyButton(() => shown.textContent))), shown);
		choose(json !== undefined ? "JSON" : encoding === "base64" ? "Hex" : "Text");
		return this;
	}
}

function textOf(octets) {
	return new TextDecoder().decode(octets);
}

function jsonOf(octets) {
	try {
		const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(octets));
		return typeof found === "object" && found !== null ? JSON.stringify(found, null, 2) : undefined;
	} catch {
		return undefined; // not JSON: it has the other views
	}
}

function hex(octets) {
	const lines = [];
	for (let at = 0; at < Math.min(octets.length, HEX_LIMIT_BYTES); at += 16) {
		const row = [...octets.slice(at, at + 16)];
		const pairs = row.map((one) => one.toString(16).padStart(2, "0")).join(" ").padEnd(47);
		const letters = row.map((one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : ".")).join("");
		lines.push(`${at.toString(16).padStart(8, "0")}  ${pairs}  ${letters}`);
	}
	if (octets.length > HEX_LIMIT_BYTES) lines.push(`... ${counted(octets.length - HEX_LIMIT_BYTES, "byte")} more`);
	return lines.join("\n");
}

customElements.define("warren-payload", Payload);

export function payload(options) {
	return h("warren-payload").begin(options);
}
