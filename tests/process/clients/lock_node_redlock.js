// node-redlock itself, as it was published, over node-redis: its version 4, which speaks to any client
// with callbacks. FILE is its redlock.js; it needs the module bluebird.
//
//   lock_node_redlock.js FILE stories PORT...
//   lock_node_redlock.js FILE compete SECONDS TTL PORT...     prints as lock_redis_py.py does
'use strict';
const redis = require('redis');

const Redlock = require(process.argv[2]);
const NAME = 'contested';

function check(condition, what) {
  if (!condition) {
    console.error(`node-redlock: ${what}`);
    process.exit(1);
  }
}

const now = () => Number(process.hrtime.bigint()) / 1e9;
const sleep = (seconds) => new Promise((done) => setTimeout(done, Math.max(0, seconds) * 1000));
/// Its locks count on the clock of the wall.
const left = (lock) => (lock.expiration - Date.now()) / 1000;

async function connect(port) {
  const client = redis.createClient({
    legacyMode: true,
    socket: { host: '127.0.0.1', port, reconnectStrategy: () => new Error('gone') },
  });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function refused(promise) {
  try {
    await promise;
    return false;
  } catch (error) {
    if (error.name === 'LockError') return true;
    throw error;
  }
}

async function stories(port) {
  const client = await connect(port);
  const once = new Redlock([client], { retryCount: 0 });
  const patient = new Redlock([client], { retryCount: 100, retryDelay: 50 });
  const keys = [`redlock:${port}:a`, `redlock:${port}:b`];
  let lock = await once.lock(keys, 60000);
  check(left(lock) > 55, `valid for ${left(lock)} s`);
  check(await refused(once.lock(keys[1], 60000)), 'a second one has it');
  lock = await lock.extend(90000);
  check(left(lock) > 85, `extended, and valid for ${left(lock)} s`);
  check((await client.v4.pTTL(keys[0])) > 89000, 'the keys have the time');
  await lock.unlock();
  check((await client.v4.exists(keys)) === 0, 'behind the release');
  check(await refused(lock.unlock()), 'it is released twice');

  const short = await once.lock(keys[0], 300);
  const begun = now();
  const next = await patient.lock(keys[0], 60000);
  check(now() - begun > 0.29, 'taken while another held it');
  check(await refused(short.extend(1000)), 'extended though it has ended');
  check(await refused(short.unlock()), "another's is released");
  check((await client.v4.get(keys[0])) === next.value, "the other's value");
  await next.unlock();
  await client.disconnect();
}

async function compete(seconds, ttl, ports) {
  const end = now() + seconds;
  while (now() < end) {
    let client = null;
    try {
      client = await connect(ports[Math.floor(Math.random() * ports.length)]);
      const locks = new Redlock([client], { retryCount: 3, retryDelay: 20, retryJitter: 10 });
      while (now() < end && client.isReady) await attempt(locks, ttl);
    } catch (error) {
      if (error.code === 'MODULE_NOT_FOUND') throw error;
      await sleep(0.05);
    }
    if (client !== null) await client.disconnect().catch(() => {});
  }
}

async function attempt(locks, ttl) {
  let lock = null;
  try {
    lock = await locks.lock(NAME, ttl * 1000);
  } catch (error) {
    // Held by another, or nobody leads.
    return sleep(0.02);
  }
  const since = now();
  const leaves = Math.random() < 0.3;
  if (!leaves && Math.random() < 0.5) {
    await sleep(Math.min(left(lock) / 2, Math.random() * 0.05));
    try {
      lock = await lock.extend(ttl * 1000);
    } catch (error) {
      // What was known before still holds.
    }
  }
  // From here on nothing is said late: its time may be over when it acts no more.
  const mine = now() + left(lock) - 0.1;
  const until = leaves ? mine : Math.min(mine, now() + Math.random() * 0.05);
  if (until <= since) return undefined;
  await sleep(until - now() - 0.002);
  while (now() < until);
  console.log(`held ${since.toFixed(6)} ${until.toFixed(6)} ${leaves ? 'left' : 'released'}`);
  if (!leaves) await lock.unlock().catch(() => {});
  return undefined;
}

async function main() {
  const [what, ...words] = process.argv.slice(3);
  if (what === 'stories') {
    for (const port of words) await stories(Number(port));
    console.log(`node-redlock: every method at ${words.length} nodes`);
  } else {
    await compete(Number(words[0]), Number(words[1]), words.slice(2).map(Number));
  }
}

main().catch((error) => check(false, error.stack));
