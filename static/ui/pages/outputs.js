// The list of outputs: feeds that are made here of feeds, exchanges and streams.

import { answer, below, button, code, column, done, empty, go, h, heading, link, looked, open, pageLink, pages, state, table, tabs, vhostFilter } from "../lib/kit.js";
import { documentLinks } from "./feed_words.js";
import { FEED_TABS } from "./feeds.js";
import { outputForm, sourceLine } from "./output_form.js";

const SOURCES = 3;
const COLUMNS = [
  column("name", "Name", (row) => [pageLink(row.name, "/outputs", row.vhost, row.name), row.title !== row.name && below(row.title)], { name: true }),
  column.vhost({ sort: undefined, hidden: true }),
  column("state", "State", (row) => (outputProblem(row) ? state("Problem", "warn") : state("OK", "good"))),
  column("sources", "Sources", ({ sources }) => [sources.slice(0, SOURCES).map((one) => h("div", {}, code(sourceLine(one)))), sources.length > SOURCES && h("small", {}, `and ${sources.length - SOURCES} more`)], { optional: true }),
  column("visibility", "Read by", (row) => (row.visibility === "token" ? "Partners" : "Everybody"), { optional: true }),
  column("documents", "Documents", (row) => documentLinks(row.vhost, row.name)),
  column.text("owner", "Owner", { sort: undefined, hidden: true }),
  column.time("changed_at", "Changed", { sort: undefined, optional: true }),
];

export function outputProblem({ notice, sources }) {
  return notice || sources.find((one) => one.problem)?.problem || "";
}

export default function outputs({ signal }) {
  const says = answer("Feeds that this hub makes, in three formats each.");
  const create = () => open("New output", (close) => outputForm(null, (vhost, name) => {
    close(true);
    done(`Created the output ${name}.`);
    go(link("/outputs", vhost, name));
  }, () => close(false)), { wide: true });
  const list = table({
    noun: "output", columns: COLUMNS, signal, key: (row) => `${row.vhost}/${row.name}`, filters: vhostFilter(), search: "Filter by name or title",
    source: async ({ page, page_size, name, vhost }, gone) => {
      const found = await pages("/hub/outputs")({ page, page_size, search: name, vhost }, gone);
      if (found.total) says.say(...looked(found.items, found.total, "output", outputProblem, ["has a problem", "have problems"], "all well"));
      return found;
    },
    empty: () => empty("No outputs yet", "An output is a feed of your own, as Atom, RSS and JSON Feed: of several feeds, of an exchange, of a stream, filtered and cut as you like, for everybody or for partners with a token.", button("Create the first output", create, "main")),
  });
  return [heading("Outputs", { about: says, actions: [button("New output", create, "main")] }), tabs("Kinds", FEED_TABS, "Outputs"), list];
}
