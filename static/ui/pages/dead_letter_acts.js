// Replays and deletes dead letters.

import { act, attempt, counted, done, path, post, remove } from "../lib/kit.js";

const LIST = "#/dead-letters";
const noun = (number) => counted(number, "dead letter");

export const address = ({ vhost, id }) => path`/hub/dead-letters/${vhost}/${id}`;

// `which` says it as a sentence begins: "All that match the filter".
// Sends each filter, and adds up what the answers count.
async function each(verb, filters) {
  const total = {};
  for (const one of filters) for (const [name, value] of Object.entries(await post(`/hub/dead-letters/${verb}`, one))) total[name] = (total[name] ?? 0) + value;
  return total;
}

export function replayLetters(number, filters, which) {
  const text = `${which} return to their subscriptions, with their old webhook-id and as if they had never failed. Those of paused subscriptions stay.`;
  return act({ act: `Replay ${noun(number)}`, text, safe: true }, () => each("replay", filters), ({ replayed, skipped }) => `Replayed ${noun(replayed)}${skipped ? `; ${noun(skipped)} skipped, since the subscription is paused or has ended` : ""}.`);
}

export function removeLetters(number, filters, which) {
  const given = filters.map((one) => (Object.keys(one).length ? one : { all: true }));
  return act({ act: `Delete ${noun(number)}`, text: `${which} are dropped for good.` }, () => each("delete", given), ({ deleted }) => `Deleted ${noun(deleted)}.`);
}

export function replay(letter) {
  return attempt(async () => {
    await post(`${address(letter)}/replay`);
    done(`Replayed: it is delivered to ${letter.callback} as if it had never failed.`);
    location.hash = LIST;
  });
}

export function drop(letter) {
  return act({ act: "Delete 1 dead letter", text: `${letter.webhook_id} is dropped for good.`, to: LIST }, () => remove(address(letter)), "Deleted the dead letter.");
}
