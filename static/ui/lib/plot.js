// Lines over time, drawn as SVG: round marks on both axes, and a cursor that all plots share.

import { fill, svg } from "./dom.js";
import { moment } from "./format.js";

const [TOP_PX, RIGHT_PX, BOTTOM_PX, LEFT_PX] = [8, 28, 24, 64];
const HEIGHT_PX = 176;
const MARK_PX = { x: 90, y: 36 };
const DAY_S = 86_400;
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY_S, 2 * DAY_S, 7 * DAY_S, 14 * DAY_S, 28 * DAY_S];
const SHOWN = new Set();

// Lines are {color, dash}. `text` writes a value beside its mark, `unit` says which marks are round: 1 for
// whole numbers, 1024 for bytes. `pointed(index)` is called with the sample under the cursor, or undefined.
export class Plot {
	constructor({ lines, text, unit, label, pointed }) {
		Object.assign(this, { lines, text, unit, pointed, data: [[]], cursor: svg("g") });
		this.element = svg("svg", { class: "plot", height: HEIGHT_PX, role: "img", "aria-label": label,
			onpointermove: (event) => pointAll(this.#timeAt(event.offsetX)), onpointerleave: () => pointAll(null) });
		this.sizes = new ResizeObserver(() => this.draw(this.data));
	}

	start() {
		SHOWN.add(this);
		this.sizes.observe(this.element);
	}

	stop() {
		SHOWN.delete(this);
		this.sizes.disconnect();
	}

	// `data` is [seconds, values, values, ...], each null where there is none. Nothing is drawn where there is no
	// sample, or no room.
	draw(data) {
		this.data = data;
		this.width = this.element.getBoundingClientRect().width;
		if (this.width <= LEFT_PX + RIGHT_PX || !data[0].length) return;
		const [times, ...series] = data;
		const highest = series.flat().reduce((most, value) => Math.max(most, value ?? 0), 1);
		const [from_s, to_s] = [times[0], times.at(-1)];
		this.top = highest * 1.08;
		this.x = (time_s) => LEFT_PX + (time_s - from_s) / (to_s - from_s || 1) * (this.width - LEFT_PX - RIGHT_PX);
		this.y = (value) => TOP_PX + (1 - value / this.top) * (HEIGHT_PX - TOP_PX - BOTTOM_PX);
		fill(this.element, this.#values(), this.#times(from_s, to_s), series.map((values, at) => this.#line(times, values, this.lines[at])), this.cursor);
		this.point(this.pointed_s);
	}

	#values() {
		const step = roundStep(this.top * MARK_PX.y / HEIGHT_PX, this.unit);
		const marks = Array.from({ length: Math.floor(this.top / step) + 1 }, (_, at) => at * step);
		return marks.map((value) => [rule({ x1: LEFT_PX, x2: this.width - RIGHT_PX, y1: this.y(value), y2: this.y(value) }),
			svg("text", { x: LEFT_PX - 8, y: this.y(value) + 4, "text-anchor": "end" }, this.text(value))]);
	}

	#times(from_s, to_s) {
		const space = MARK_PX.x * (to_s - from_s) / (this.width - LEFT_PX - RIGHT_PX);
		const step = TIME_STEPS_S.find((one) => one >= space) ?? TIME_STEPS_S.at(-1);
		return roundTimes(from_s, to_s, step).map((time_s) => [rule({ x1: this.x(time_s), x2: this.x(time_s), y1: TOP_PX, y2: HEIGHT_PX - BOTTOM_PX }),
			svg("text", { x: this.x(time_s), y: HEIGHT_PX - 6, "text-anchor": "middle" }, moment(time_s * 1000, to_s - from_s))]);
	}

	// A sample between two gaps is a dot: a line of no length with round ends.
	#line(times, values, { color, dash }) {
		let command = "M";
		const points = times.map((time_s, at) => {
			if (values[at] === null || values[at] === undefined) { command = "M"; return ""; }
			const point = `${command}${this.x(time_s).toFixed(1)} ${this.y(values[at]).toFixed(1)}${command === "M" ? "h0" : ""}`;
			command = "L";
			return point;
		});
		return svg("path", { d: points.join(""), stroke: `var(--series-${color})`, "stroke-dasharray": dash });
	}

	#timeAt(x) {
		const [times] = this.data;
		return times[0] + (x - LEFT_PX) / (this.width - LEFT_PX - RIGHT_PX) * (times.at(-1) - times[0]);
	}

	// Moves the cursor to the sample nearest to this time; null takes it away.
	point(time_s = null) {
		this.pointed_s = time_s;
		const [times, ...series] = this.data;
		if (!this.x || !times.length) return;
		const at = time_s === null ? undefined : nearest(times, time_s);
		this.pointed(at);
		if (at === undefined) return void fill(this.cursor);
		const x = this.x(times[at]);
		fill(this.cursor, svg("line", { class: "cursor", x1: x, x2: x, y1: TOP_PX, y2: HEIGHT_PX - BOTTOM_PX }), series.map((values, line) =>
			(values[at] ?? null) !== null && svg("circle", { cx: x, cy: this.y(values[at]), r: 3.5, fill: `var(--series-${this.lines[line].color})` })));
	}
}

function pointAll(time_s) {
	SHOWN.forEach((plot) => plot.point(time_s));
}

function rule(ends) {
	return svg("line", { class: "rule", ...ends });
}

function nearest(times, time_s) {
	return times.reduce((best, one, at) => (Math.abs(one - time_s) < Math.abs(times[best] - time_s) ? at : best), 0);
}

// Returns the smallest round number that is no less than `least`: a power of two where bytes are counted,
// else 1, 2 or 5 times a power of ten.
function roundStep(least, unit) {
	if (unit === 1024) return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
	const power = 10 ** Math.floor(Math.log10(least));
	const step = power * [1, 2, 5, 10].find((one) => one * power >= least);
	return Math.max(unit, step);
}

// Returns the multiples of `step_s` between two times, by the clock of this place.
function roundTimes(from_s, to_s, step_s) {
	const offset_s = (time_s) => new Date(time_s * 1000).getTimezoneOffset() * 60;
	const first = Math.ceil((from_s - offset_s(from_s)) / step_s);
	const number = Math.floor((to_s - offset_s(to_s)) / step_s) - first + 1;
	return Array.from({ length: Math.max(0, number) }, (_, at) => (first + at) * step_s).map((local_s) => local_s + offset_s(local_s));
}
