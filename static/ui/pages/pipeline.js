// The data pipeline: what runs, how far archives are, and what the jobs have found.

import { act, below, button, bytes, column, command, count, cut, duration, empty, get, grid, h, heading, HUB, instant, pageLink, patch, path, quoted, remove, section, session, state, table, time } from "../lib/kit.js";
import { pipelineCharts } from "./pipeline_charts.js";

const STATES = { running: ["Running", "info"], done: ["Done", "good"], failed: ["Failed", "bad"], lost: ["Lost", "warn"] };
const STATE_OPTIONS = [["", "All states"], ...Object.entries(STATES).map(([value, [text]]) => [value, text])];
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
  column.acts((row) => button("Remove", () => forget(row), "small", { "aria-label": `Remove the run ${row.run}` })),
];
const ARCHIVES = [{ label: "Stream" }, { label: "Archive" }, { label: "State" }, { label: "Offset", end: true }, { label: "Behind", end: true }, { label: "Reported" }, { label: "Where", wide: true }];

export default function pipeline({ signal }) {
  const archives = h("div");
  const url = HUB.slice(0, -1);
  const lines = `warren pipeline capture x amq.topic --stream log --url ${url}\nwarren pipeline run rollup --stream log --out rollup --url ${url} --user ${quoted(session.name)}`;
  const list = table({
    noun: "run", signal, sort: { by: "updated", reverse: true }, search: "Filter by job, run or stream", key: (row) => `${row.job}/${row.run}`, columns: COLUMNS,
    filters: [{ name: "state", label: "State", options: STATE_OPTIONS }],
    source: async ({ state: wanted, ...query }, gone) => {
      const found = await get("/hub/pipeline", {}, gone);
      patch(archives, found.archives.length > 0 && section("Archives", null, grid("Table of archives", ARCHIVES, found.archives.map(archive))));
      return cut(found.runs.filter((one) => !wanted || one.state === wanted), query, (row) => `${row.job} ${row.run} ${row.stream}`);
    },
    empty: () => empty("No runs yet", "Jobs count, archive and compare what went through a stream, in a process of their own with Spark. First capture an exchange in a stream, then run a job on it:", command(lines)),
  });
  return [heading("Pipeline", { about: "Jobs on streams: what they have found, their runs, and how far archives are." }), pipelineCharts(signal), h("h2", {}, "Runs"), list, archives];
}

function forget({ job, run }) {
  return act({ act: `Remove the run ${run} of ${job} from the list`, text: "The job itself, its files and its results stay." }, () => remove(path`/hub/pipeline/runs/${job}/${run}`), `Removed the run ${run}.`);
}

function archive(one) {
  const now = one.exceeded ? state(`Exceeded: ${one.exceeded}`, "bad") : one.offset === null ? state("Never reported", "warn") : one.retention_waits ? state("Retention waits", "info") : state("OK", "good");
  return [pageLink(one.stream, one.source === "exchange" ? "/exchanges" : "/queues", one.vhost, one.stream), one.archive, now,
    count(one.offset), [count(one.lag), one.bytes_behind > 0 && h("small", {}, ` ${bytes(one.bytes_behind)}`)], time(one.updated), one.manifest || "–"];
}
