// Gives a page its answers, and the live view a snapshot with two minutes of history, at a fixed time.
(answers) => {
  const ask = fetch;
  const { snapshot } = answers;
  Date.now = () => snapshot.at_ms;
  window.fetch = (url, options) => {
    const found = answers[new URL(url, location).pathname.replace("/api", "")];
    if (!found) return ask(url, options);
    return Promise.resolve(new Response(JSON.stringify(found), { headers: { "content-type": "application/json" } }));
  };
  const times = Array.from({ length: 120 }, (_, at) => Math.round(snapshot.at_ms / 1000) - 120 + at);
  const wave = (high) => times.map((_, at) => high * (1 + Math.sin(at / 9) / 4));
  const highs = { ...snapshot.rates, ...snapshot.hub.rates, messages_ready: 9000, messages_unacknowledged: 40 };
  const series = Object.fromEntries(Object.entries(highs).map(([name, high]) => [name, wave(high)]));
  return import("/ui/lib/live.js").then(({ live, stopLive }) => {
    stopLive();
    Object.assign(live, { snapshot, history: { step_s: 1, times, series }, state: "live", at: Date.now() });
  });
}
