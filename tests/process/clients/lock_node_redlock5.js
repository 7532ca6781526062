// node-redlock itself, as it was published, over ioredis: its version 5. Both are modules of NODE_PATH.
//
//   lock_node_redlock5.js stories PORT...
//   lock_node_redlock5.js refusals PORT...
'use strict';
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');
const { login, tls } = require('./access.js');

function check(condition, what) {
  if (!condition) throw new Error(what);
}

function connect(port) {
  // Its ready check asks for INFO, which a user that may only lock is refused.
  const client = new Redis({ host: '127.0.0.1', port, tls, ...login, enableReadyCheck: false });
  client.on('error', () => {});
  return client;
}

/// The errors of the clients for which the library could not do it.
async function reasons(promise) {
  try {
    await promise;
    return [];
  } catch (error) {
    const attempts = await Promise.all(error.attempts);
    return attempts.flatMap((attempt) => [...attempt.votesAgainst.values()]);
  }
}

async function stories(port) {
  const client = connect(port);
  const once = new Redlock([client], { retryCount: 0 });
  const keys = [`locks:redlock5:${port}:a`, `locks:redlock5:${port}:b`];
  let lock = await once.acquire(keys, 60000);
  check((await reasons(once.acquire([keys[1]], 60000))).length === 1, 'a second one has it');
  lock = await lock.extend(90000);
  const left = await client.pttl(keys[0]);
  check(left > 89000 && left <= 90000, `extended to ${left}`);
  await lock.release();
  check((await client.exists(keys)) === 0, 'behind the release');
  let counted = 0;
  await Promise.all([1, 2, 3].map(() => new Redlock([client], { retryCount: 100, retryDelay: 20 }).using(
    [keys[0]], 5000, async () => {
      check(++counted === 1, 'two are using it at once');
      await new Promise((resolve) => setTimeout(resolve, 30));
      counted--;
    })));
  await client.quit();
}

async function refusals(port) {
  const client = connect(port);
  const once = new Redlock([client], { retryCount: 0 });
  once.on('error', () => {});
  const lock = await (await once.acquire(['locks:redlock5:mine'], 60000)).extend(90000);
  await lock.release();
  const why = await reasons(once.acquire(['another'], 60000));
  check(why.length === 1 && why[0] instanceof Redis.ReplyError && /^NOPERM .*key/.test(why[0].message),
    `a lock with another key: ${why}`);
  let refused = null;
  await client.incr('locks:redlock5:mine').catch((error) => { refused = error; });
  check(refused !== null && /^NOPERM .*incr/.test(refused.message), `another command: ${refused}`);
  await client.quit();
}

(async () => {
  const [what, ...ports] = process.argv.slice(2);
  for (const port of ports) await (what === 'stories' ? stories : refusals)(Number(port));
  const told = what === 'stories' ? 'every method' : 'with no right but that to lock,';
  console.log(`node-redlock 5 over ioredis: ${told} at ${ports.length} nodes`);
  process.exit(0);
})().catch((error) => {
  console.error(`node-redlock 5: ${error.stack}`);
  process.exit(1);
});
