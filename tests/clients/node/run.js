// Runs every scenario against the broker at the URL given and prints one JSON object:
// the scenario's name and "passed", or the error that ended it.

import amqplib from 'amqplib';

import { scenarios } from './scenarios.js';

const SCENARIO_LIMIT_MS = 15_000;

function limited(promise) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`not finished within ${SCENARIO_LIMIT_MS} ms`)),
      SCENARIO_LIMIT_MS,
    );
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

async function run(scenario, url) {
  const connections = [];
  const open = async (options) => {
    const connection = await amqplib.connect(url, options);
    connection.on('error', () => {}); // a scenario that expects an error looks at its close
    connections.push(connection);
    return connection;
  };
  try {
    await limited(scenario(open, url));
    return 'passed';
  } catch (error) {
    return error.stack ?? String(error);
  } finally {
    await Promise.all(connections.map((connection) => connection.close().catch(() => {})));
  }
}

const report = {};
for (const [name, scenario] of Object.entries(scenarios)) {
  report[name] = await run(scenario, process.argv[2]);
}
process.stdout.write(JSON.stringify(report));
