import { button, column, done, formDialog, go, has, heading, link, pageLink, pages, path, put, resume, table, tag } from "../lib/kit.js";

export const QUEUE_TYPES = ["classic", "quorum", "stream"];
const COLUMNS = [
	column.named("name", "Name", (row) => pageLink(row.name, "/vhosts", row.name)),
	column.text("description", "Description", { sort: undefined, clip: true, optional: true }),
	column("tags", "Tags", (row) => row.tags.map((text) => [tag(text), " "]), { optional: true, hidden: true }),
	column.count("messages_ready", "Ready"),
	column.count("messages_unacknowledged", "Unacked"),
	column.rate("message_stats.publish_details.rate", "In", { sort: undefined }),
	column.rate("message_stats.deliver_get_details.rate", "Out", { sort: undefined }),
];

export default function vhosts({ signal }) {
	return [heading("Virtual hosts", { actions: has("administrator") && button("New virtual host", add, "main"), about: "Each has exchanges, queues and permissions of its own." }),
		table({ noun: "virtual host", signal, sort: { by: "name" }, source: pages("/vhosts"), columns: COLUMNS })];
}

function add() {
	return formDialog("New virtual host", {
		name: "new-vhost", button: "Create virtual host",
		fields: [{ name: "name", label: "Name", required: true }, { name: "default_queue_type", label: "Type of new queues", type: "select", options: QUEUE_TYPES }, { name: "description", label: "Description", wide: true }],
		submit: async ({ name, ...body }) => {
			await put(path`/vhosts/${name}`, body);
			await resume();
			done(`Created the virtual host ${name}; you may do everything in it.`);
			go(link("/vhosts", name));
		},
	});
}
