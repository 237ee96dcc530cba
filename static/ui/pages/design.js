// All components on one page, for whoever adds one or changes a token.
import { act, button, buttons, card, chart, column, command, count, cut, done, empty, facts, form, grid, h, heading, menu, meter, notice, payload, rate, report, section, state, table, tabs, tag, tiles, time } from "../lib/kit.js";
import { picture } from "./flow.js";

const ROWS = Array.from({ length: 120 }, (_, at) => ({ name: `orders.${at}`, messages: (at * 7919) % 1000, since: Date.now() - at * 1e6 }));
const SAMPLES = 120;
const FIELDS = [
	{ name: "name", label: "Name", required: true, help: "Help below the field." }, { name: "kind", label: "Kind", type: "select", options: ["direct", "topic"] }, { name: "count", label: "Count", type: "number" },
	{ name: "durable", label: "Durable", type: "check" }, { name: "arguments", label: "Arguments", type: "table", known: [["x-max-length", "Most ready messages"]], value: { "x-max-length": 100 } },
];

export default function design({ signal }) {
	const drawing = chart({ title: "Chart", text: rate, lines: [1, 2, 3, 4, 5, 6].map((color) => ({ label: `Series ${color}`, color, dash: color === 6 ? "6 4" : undefined })) });
	const times = Array.from({ length: SAMPLES }, (_, at) => Math.round(Date.now() / 1000) - SAMPLES + at);
	drawing.show([times, ...[1, 2, 3, 4, 5, 6].map((color) => times.map((_, at) => 100 * color + 40 * Math.sin(at / (4 + color))))]);
	return [
		heading("Components", { list: ["Overview", "#/"], states: [state("Running", "good")], actions: [button("Button"), button("Main button", null, "main")], about: "What the pages are made of. Values come from tokens.css." }),
		tabs("Example", [["First", "#/design"], ["Second", "#/"]], "First"),
		tiles([["Ready", count(1204)], ["Published", rate(3120)], ["A link", count(7), "#/queues"], ["With a unit", "1.3", null, "ms"]]),
		h("div", { class: "grid" },
			card("States", h("p", {}, ["good", "info", "warn", "bad", ""].map((kind) => [state(kind || "none", kind), " "])), h("p", {}, tag("durable"), " ", tag("x-max-length")), h("p", {}, "A time: ", time(Date.now() - 5e6)), meter(0.3), meter(0.85, "warn"), meter(1, "bad")),
			card("Facts", facts([["Type", "topic"], ["Created", time(Date.now() - 9e7)], ["Not shown", null]])),
			card("Buttons", buttons(button("Plain"), button("Main", null, "main"), button("Small", null, "small"), button("Disabled", null, null, { disabled: true }),
				button("Purge", () => act({ act: "Purge 1,204 messages from orders", text: "They can't be brought back.", typed: "orders" }, async () => {}, "Purged 1,204 messages from orders."), "danger")),
			buttons(button("A message", () => done("It is done."), "small"), button("An error", () => report(Object.assign(new Error("The queue orders is full (10,000 messages)."), { status: 503 })), "small"))),
		),
		notice("", h("span", {}, "A notice.")), notice("warn", state("Warning", "warn"), h("span", {}, "Free disk space is low.")), notice("bad", state("Problem", "bad"), h("span", {}, "The disk is full.")),
		card("Form", form({ name: "design", button: "Save", fields: FIELDS, submit: async () => done("Saved.") })),
		card(null, drawing),
		card("Menu and timeline", h("p", {}, "Acts on an object: ", menu("Acts", () => [["Pause", () => done("Paused.")], ["End", () => done("Ended."), "danger"]])), h("ol", { class: "timeline" }, h("li", {}, h("b", {}, "First"), h("small", {}, "an hour ago")), h("li", { "aria-current": "step" }, h("b", {}, "Second"), h("small", {}, "now")))),
		card("Picture of bindings", picture("orders", [{ name: "events", kind: "exchange", words: ["order.#"] }], [{ name: "orders.paid", kind: "queue", words: ["order.paid"] }, { name: "audit", kind: "exchange", words: ["#"] }, { name: "hub.sub.1", kind: "queue", words: ["order.*"], subscription: { id: "1", callback: "https://example.com/hook" } }], "/")),
		card("Command", command("curl -u guest:guest -d hello http://localhost:15672/endpoint/x/amq.topic")),
		card("Payload", payload({ payload: '{"order": 7, "note": "<b>text</b>"}' })),
		section("A small table", button("Beside it", null, "small"), grid("Small table", [{ label: "Name" }, { label: "Count", end: true }], [["first", count(12)], ["second", count(1204)]])),
		table({ noun: "row", signal, every_s: 0, sort: { by: "name" }, source: async (query) => cut(ROWS, query), columns: [column.text("name", "Name", { name: true }), column.count("messages", "Messages"), column.time("since", "Since", { hidden: true })] }),
		card(null, empty("Nothing here yet", "An empty page says what it will show and how to get there.", button("Do it", null, "main"))),
	];
}
