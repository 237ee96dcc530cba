// What is done to several queues at once.

import { act, button, counted, get, path, put, remove, report } from "../lib/kit.js";
import { isOwn } from "./queues.js";

// Returns the buttons for these rows; `done` is called after an act. Purging looks first, so that it names the count of now.
export function acts(rows, done) {
  const queues = counted(rows.length, "queue");
  const names = rows.map((one) => one.name).join(", ");
  const purged = rows.filter((one) => one.type !== "stream");
  const paused = rows.every((one) => one.state === "paused");
  const [verb, past] = paused ? ["Resume", "Resumed"] : ["Pause", "Paused"];
  const ask = async (question, some, perform, outcome) => { if (await act(question, () => each(some, perform), outcome)) done(); };
  const purge = async () => {
    const lengths = await Promise.all(purged.map((one) => get(where(one), { columns: "messages_ready" })));
    const what = `${counted(lengths.reduce((sum, one) => sum + one.messages_ready, 0), "message")} from ${counted(purged.length, "queue")}`;
    await ask({ act: `Purge ${what}`, text: `They are gone for good: ${names}. Messages that consumers hold unacknowledged stay.` }, purged, (one) => remove(`${where(one)}/contents`), `Purged ${what}.`);
  };
  return [
    button(`${verb} ${queues}`, () => ask({ act: `${verb} ${queues}`, text: `${names}.`, safe: true }, rows, (one) => put(`${where(one)}/${verb.toLowerCase()}`), `${past} ${queues}.`), "small"),
    purged.length > 0 && button(`Purge ${counted(purged.length, "queue")}`, () => purge().catch(report), "small danger"),
    !rows.some((one) => isOwn(one.name)) && button(`Delete ${queues}`, () => ask({ act: `Delete ${queues}`, text: `Deleted with all messages in them: ${names}.`, typed: queues }, rows, (one) => remove(where(one)), `Deleted ${queues}.`), "small danger"),
  ];
}

const where = ({ vhost, name }) => path`/queues/${vhost}/${name}`;

// One after the other; an error says how far it got.
async function each(rows, perform) {
  for (const [at, row] of rows.entries()) {
    await perform(row).catch((error) => {
      error.message = `${row.name}: ${error.message} (${at} of ${counted(rows.length, "queue")} done before)`;
      throw error;
    });
  }
}
