const NUMBER = new Intl.NumberFormat("en");
const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY_S = 86_400;
const PRECISE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

export function count(value) {
	return value === null || value === undefined ? "–" : NUMBER.format(value);
}

// Returns "1 message" or "1,204 messages".
export function counted(value, singular, plural = `${singular}s`) {
	return `${count(value)} ${value === 1 ? singular : plural}`;
}

export function asText(value) {
	return typeof value === "string" ? value : JSON.stringify(value);
}

export function rate(value) {
	if (value === null || value === undefined) return "–";
	if (value >= 100) return `${NUMBER.format(Math.round(value))}/s`;
	if (value < 1) return `${Number(value.toFixed(2))}/s`;
	return `${value.toFixed(value >= 10 ? 0 : 1)}/s`;
}

export function bytes(value) {
	if (value === null || value === undefined) return "–";
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let at = 0;
	while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
	return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

// Returns a length of time by its two largest units, as in "3 d 4 h".
export function duration(seconds) {
	if (seconds === null || seconds === undefined) return "–";
	if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
	const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
	const first = units.findIndex(([, size]) => seconds >= size);
	return units.slice(first, first + 2).flatMap(([unit, size], at) => {
		const whole = Math.floor(seconds / size);
		seconds -= whole * size;
		return whole || !at ? [`${whole} ${unit}`] : [];
	}).join(" ");
}

// Returns milliseconds since 1970 for what the API has: RFC 3339, or a number of milliseconds.
export function instant(value) {
	return typeof value === "number" ? value : Date.parse(value);
}

export function date(value) {
	return DATE.format(instant(value));
}

export function day(value) {
	return DAY.format(instant(value));
}

export function clock(value) {
	return CLOCK.format(instant(value));
}

// Returns the clock to the millisecond, and the day before it if that is not today.
export function momentOf(value) {
	const at = new Date(instant(value));
	const is_today = at.toDateString() === new Date().toDateString();
	return is_today ? PRECISE.format(at) : `${SHORT_DAY.format(at)} ${PRECISE.format(at)}`;
}

// Returns a time as it is read on an axis: within a day the clock, else the date.
export function moment(value, span_s) {
	return span_s > DAY_S ? MOMENT.format(instant(value)) : clock(value);
}

export function ago(value, now = Date.now()) {
	const seconds = (now - instant(value)) / 1000;
	if (Math.abs(seconds) < 1) return "now";
	return seconds < 0 ? `in ${duration(-seconds)}` : `${duration(seconds)} ago`;
}
