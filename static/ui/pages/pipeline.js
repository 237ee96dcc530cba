// The data pipeline: what runs, how far archives are, and what the jobs have found.

import { answer, below, bytes, column, command, count, counted, cut, dropButton, duration, empty, entries, get, grid, h, heading, HUB, instant, pageLink, patch, path, quoted, section, session, state, table, time } from "../lib/kit.js";
import { pipelineCharts } from "./pipeline_charts.js";

const STATES = { failed: ["Failed", "bad"], lost: ["Lost", "warn"], running: ["Running", "info"], done: ["Done", "good"] };
const COLUMNS = [
	column.named("job", "Job", (row) => [h("strong", {}, row.job), below(row.run), row.error && h("small", { class: "below problem" }, row.error)]),
	column("stream", "Stream", (row) => row.stream || "–", { sort: "stream" }),
	column("state", "State", (row) => state(...STATES[row.state]), { sort: "state" }),
	column.count("rows", "Rows"),
	column.count("lag", "Lag", { help: "Messages that it has not read yet" }),
	column.count("dropped", "Dropped", { optional: true, help: "Rows that came too late to be counted" }),
	column.time("started", "Started", { hidden: true }),
	column("took", "Ran", (row) => duration((instant(row.updated) - instant(row.started)) / 1000), { end: true, hidden: true }),
	column.time("updated", "Last report", { optional: true }),
	column.vhost({ hidden: true }),
	column.text("owner", "Owner", { hidden: true }),
	column.acts((row) => dropButton("Remove", `the run ${row.run} of ${row.job} from the list`, path`/hub/pipeline/runs/${row.job}/${row.run}`, { text: "The job itself, its files and its results stay.", kind: "small" })),
];
const ARCHIVES = [{ label: "Stream" }, { label: "Archive" }, { label: "State" }, { label: "Offset", end: true }, { label: "Behind", end: true }, { label: "Reported" }, { label: "Where", wide: true }];

export default function pipeline({ signal }) {
	const archives = h("div");
	const says = answer("Jobs on streams: what they have found, their runs, and how far archives are.");
	const url = HUB.slice(0, -1);
	const lines = `warren pipeline capture x amq.topic --stream log --url ${url}\nwarren pipeline run rollup --stream log --out rollup --url ${url} --user ${quoted(session.name)}`;
	const list = table({
		noun: "run", signal, sort: { by: "updated", reverse: true }, search: "Filter by job, run or stream", key: (row) => `${row.job}/${row.run}`, columns: COLUMNS,
		filters: [{ name: "state", counted: true }],
		source: async ({ state: wanted, ...query }, gone) => {
			const found = await get("/hub/pipeline", {}, gone);
			patch(archives, found.archives.length > 0 && section("Archives", null, grid("Table of archives", ARCHIVES, found.archives.map(archive))));
			const numbers = {};
			for (const one of found.runs) numbers[one.state] = (numbers[one.state] ?? 0) + 1;
			const lag = Math.max(0, ...found.runs.map((one) => one.lag ?? 0));
			says.of({ items: found.runs, total: found.runs.length }, "run", (one) => one.state === "failed" || one.state === "lost", ["failed or is lost", "failed or are lost"], lag ? `at most ${counted(lag, "message")} behind` : "nothing left to read");
			return { ...cut(found.runs.filter((one) => !wanted || one.state === wanted), query, (row) => `${row.job} ${row.run} ${row.stream}`), chips: [["state", "State", entries(numbers, STATES)]] };
		},
		empty: () => empty("No runs yet", "Jobs count, archive and compare what went through a stream, in a process of their own with Spark. First capture an exchange in a stream, then run a job on it:", command(lines)),
	});
	return [heading("Pipeline", { about: says }), pipelineCharts(signal), h("h2", {}, "Runs"), list, archives];
}

function archive(one) {
	const now = one.exceeded ? state(`Exceeded: ${one.exceeded}`, "bad") : one.offset === null ? state("Never reported", "warn") : one.retention_waits ? state("Retention waits", "info") : state("OK", "good");
	return [pageLink(one.stream, one.source === "exchange" ? "/exchanges" : "/queues", one.vhost, one.stream), one.archive, now,
		count(one.offset), [count(one.lag), one.bytes_behind > 0 && h("small", {}, ` ${bytes(one.bytes_behind)}`)], time(one.updated), one.manifest || "–"];
}
