// Dialogs that add feeds: one by its URL, with the choice among several, or many by OPML.

import { alter, button, buttons, closing, count, counted, done, fill, form, formDialog, get, go, h, link, meter, open, path, post, refresh, report, request, vhostField } from "../lib/kit.js";

const VISIBILITY = { name: "visibility", label: "Documents are read by", type: "select", options: [["public", "Everybody"], ["private", "Its owner and administrators"]], help: "A feed whose URL has a secret has to be private." };
const INTERVAL = { name: "min_interval_s", label: "Seconds between polls, at least", type: "number", placeholder: "as the server says", help: "60 to 604,800. Warren chooses by how often the feed changes." };
const SELECTOR = { name: "selector", label: "Selector", placeholder: "$.items or main > article", help: "For pages and data that are not feeds: a CSS selector, a JSON path, or * for all." };
const HUB_FIELD = { name: "hub", label: "WebSub hub", placeholder: "https://", help: "For feeds that name none." };

const FIRST = { name: "first", label: "Entries to publish at once", type: "number", placeholder: "none", help: "The newest ones of each feed." };

const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== null));

async function register(body) {
	const feed = await post("/hub/feeds", given(body));
	done(`Added the feed ${feed.name}. ${feed.health}`);
	go(link("/feeds", feed.vhost, feed.name));
}

export async function addFeed() {
	let several = null;
	await formDialog("Add feed", {
		name: "add-feed", button: "Add feed",
		fields: [
			{ name: "url", label: "URL of the feed, or of a page that names it", type: "url", required: true, wide: true, placeholder: "https://example.org/feed.xml" },
			{ name: "name", label: "Name", placeholder: "after its title", help: "The routing key of its messages." }, vhostField(),
			FIRST, INTERVAL, SELECTOR, HUB_FIELD, VISIBILITY,
		],
		submit: async (body) => {
			try {
				await register(body);
			} catch (error) {
				if (error.status !== 300) throw error;
				several = { body, candidates: error.document.candidates };
			}
		},
	});
	if (several) await choose(several);
}

// The page names several feeds: one is chosen.
function choose({ body, candidates }) {
	return open(`${new URL(body.url).hostname} names ${counted(candidates.length, "feed")}`, (close) => {
		const radios = candidates.map(({ url, title, type }, at) => h("label", { class: "check" }, h("input", { type: "radio", name: "candidate", value: url, checked: at === 0 }),
			h("span", {}, title || url, h("br"), h("small", {}, url, type ? ` · ${type}` : ""))));
		const problem = h("p", { class: "problem", role: "alert" });
		return h("form", { class: "stack", onsubmit: async (event) => {
			event.preventDefault();
			const url = event.target.querySelector(":checked").value;
			try {
				await register({ ...body, url });
				close(true);
			} catch (error) {
				fill(problem, error.message);
			}
		} }, h("fieldset", { class: "stack" }, h("legend", {}, "Which one is it?"), radios), problem,
		buttons(button("Cancel", () => close(false)), h("button", { type: "submit", class: "main" }, "Add this feed")));
	});
}

export function editFeed(feed) {
	return form({
		name: `feed:${feed.name}`, button: "Save settings",
		fields: [{ name: "url", label: "URL", type: "url", required: true, wide: true, value: feed.url }, { ...INTERVAL, value: feed.min_interval_s }, { ...SELECTOR, value: feed.selector }, { ...HUB_FIELD, value: feed.hub }, { ...VISIBILITY, value: feed.visibility }],
		submit: async (body) => {
			await alter(path`/hub/feeds/${feed.name}`, body);
			done(`Saved the settings of ${feed.name}.`);
		},
	});
}

// Sends an OPML file and shows how far its import is.
export function importFeeds(signal) {
	return open("Import OPML", (close) => {
		const holder = h("div", { class: "stack" });
		const file = h("input", { type: "file", name: "file", accept: ".opml,.xml,text/x-opml", required: true });
		const started = new AbortController();
		fill(holder, h("label", { class: "field" }, h("span", {}, "OPML file, as feed readers export it"), file),
			form({ name: "import-feeds", button: "Import feeds", cancel: () => close(), fields: [vhostField(), FIRST],
				submit: async ({ vhost, first }) => {
					if (!file.files.length) throw Object.assign(new Error("Choose a file first."), { status: 0 });
					const job = await request("POST", "/hub/feeds/import", { query: { vhost, first }, body: file.files[0] });
					signal.addEventListener("abort", () => started.abort());
					holder.closest("dialog").addEventListener("close", () => started.abort());
					refresh(async (gone) => {
						const now = await get(path`/hub/feeds/import/${job.id}`, {}, gone);
						fill(holder, progress(now), closing(close));
						if (now.state !== "running") started.abort();
					}, started.signal, 1);
				} }));
		return holder;
	}).catch(report);
}

function progress({ state, total, done: finished, added, known, refused_count, refused, error }) {
	return [h("p", {}, state === "running" ? `${count(finished)} of ${counted(total, "feed")}` : `${counted(added, "feed")} added, ${count(known)} known already, ${count(refused_count)} refused.`),
		meter(total ? finished / total : 1, error ? "bad" : "", `${finished} of ${total}`), error && h("p", { class: "problem" }, error),
		refused.length > 0 && h("details", {}, h("summary", {}, `${counted(refused_count, "refused URL")}`), h("ul", { class: "stack" }, refused.map((one) => h("li", {}, one.url, h("br"), h("small", {}, one.reason)))))];
}
