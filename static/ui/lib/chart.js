// <warren-chart>: lines over time in a figure with a caption, a legend and a table.

import { button, fill, h, svg } from "./dom.js";
import { count, moment } from "./format.js";
import { Plot } from "./plot.js";
import { grid } from "./view.js";

const TABLE_ROWS = 30;

// Options: title, lines [{label, color (1 to 6), dash}], text(value) for axis and legend, and `unit` of a
// plot. Then `show` is called with aligned arrays, [seconds, values, values, ...]; null is a gap.
class Chart extends HTMLElement {
	begin({ title, lines, text, unit = text === count ? 1 : 0 }) {
		Object.assign(this, { title_: title, lines, text, data: [[], ...lines.map(() => [])] });
		this.plot = new Plot({ lines, text, unit, label: `Chart: ${title}. The same numbers are in its table.`, pointed: (at) => this.#legend(at) });
		this.legend = h("div", { class: "legend" });
		this.note = h("p", { class: "quiet" }, "Nothing to show yet.");
		this.rows = h("div", { class: "table", hidden: true });
		this.toggle = button("Table", () => this.#toggle(), "link small", { "aria-expanded": "false" });
		fill(this, h("figure", {}, h("figcaption", {}, h("h2", {}, title), this.legend, this.toggle), this.note, this.plot.element, this.rows));
		this.#empty();
		return this;
	}

	connectedCallback() {
		this.plot.start();
	}

	disconnectedCallback() {
		this.plot.stop();
	}

	show(data) {
		this.data = data;
		this.#empty();
		if (!this.rows.hidden) this.#table();
		this.plot.draw(data);
	}

	#empty() {
		const is_empty = !this.data[0].length;
		this.note.hidden = !is_empty;
		for (const part of [this.legend, this.toggle]) part.hidden = is_empty;
		this.plot.element.toggleAttribute("hidden", is_empty);
	}

	// The values under the pointer, else the newest.
	#legend(at) {
		const index = at ?? this.data[0].length - 1;
		fill(this.legend, this.lines.map((line, number) => {
			const mark = h("i");
			mark.style.borderTopColor = `var(--series-${line.color})`;
			if (line.dash) mark.style.borderTopStyle = "dashed";
			return h("span", {}, mark, line.label, h("b", {}, this.text(this.data[number + 1]?.[index] ?? null)));
		}));
	}

	// How long the time is that the chart shows: beyond a day its times are dates.
	get span_s() {
		const [times] = this.data;
		return times.length ? times.at(-1) - times[0] : 0;
	}

	#toggle() {
		this.rows.hidden = !this.rows.hidden;
		this.toggle.setAttribute("aria-expanded", String(!this.rows.hidden));
		if (!this.rows.hidden) this.#table();
	}

	#table() {
		const [times, ...series] = this.data;
		const step = Math.max(1, Math.ceil(times.length / TABLE_ROWS));
		const rows = times.map((time, at) => [time, at]).filter(([, at]) => (times.length - 1 - at) % step === 0).reverse();
		const columns = [{ label: "Time" }, ...this.lines.map(({ label }) => ({ label, end: true }))];
		fill(this.rows, grid(`${this.title_} as a table`, columns, rows.map(([time, at]) => [moment(time * 1000, this.span_s), ...series.map((values) => this.text(values[at] ?? null))])));
	}
}

customElements.define("warren-chart", Chart);

export function chart(options) {
	return h("warren-chart").begin(options);
}

const AGE_S = 600;

// What a request adds to get the samples of ten minutes, of messages, lengths or octets.
export const windowOf = (kind) => ({ [`${kind}_age`]: AGE_S, [`${kind}_incr`]: 5 });

// Returns a chart of these samples, with lines [[name, label, colour], ...]; its `draw` takes the object that
// has them. Counters become rates; `raw` values stay.
export function history(title, lines, text, { raw = false, unit } = {}) {
	const drawing = chart({ title, text, unit, lines: lines.map(([, label, color]) => ({ label, color })) });
	drawing.draw = (stats) => {
		const data = fromSamples(stats, lines.map(([name]) => name), raw);
		drawing.show(data[0].length > 1 ? data : still(lines));
	};
	return drawing;
}

// What has counted nothing yet has no samples: its lines are at 0.
function still(lines) {
	const now_s = Math.round(Date.now() / 1000);
	return [[now_s - AGE_S, now_s], ...lines.map(() => [0, 0])];
}

function fromSamples(stats, names, raw) {
	const all = names.map((name) => [...(stats?.[`${name}_details`]?.samples ?? [])].reverse());
	const longest = all.reduce((best, one) => (one.length > best.length ? one : best), []);
	const times = longest.map((one) => one.timestamp / 1000);
	const series = all.map((samples) => longest.map((one, at) => {
		const now = samples[at];
		const before = samples[at - 1];
		if (raw || !now) return now?.sample ?? null;
		return before ? Math.max(0, (now.sample - before.sample) * 1000 / (now.timestamp - before.timestamp)) : null;
	}));
	return raw ? [times, ...series] : [times.slice(1), ...series.map((one) => one.slice(1))];
}

// What a request for a list adds to get the samples of `spark`.
export const SPARK = { lengths_age: AGE_S, lengths_incr: 60 };

// Ten minutes of a figure as a line beside it: `samples` are the API's, the newest first.
export function spark({ samples = [] }, kind = "") {
	const values = samples.map((one) => one.sample).reverse();
	if (values.length < 2) return null;
	const top = Math.max(1, ...values);
	const points = values.map((value, at) => `${Math.round(at * 80 / (values.length - 1))},${(18 - 16 * value / top).toFixed(1)}`);
	return svg("svg", { class: `spark ${kind}`, viewBox: "0 0 80 20", role: "img", "aria-label": `${count(values[0])} ten minutes ago, ${count(values.at(-1))} now` }, svg("polyline", { points: points.join(" ") }));
}
