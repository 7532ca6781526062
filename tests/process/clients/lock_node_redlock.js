// node-redlock itself, as it was published, over node-redis: its version 4, which speaks to any client
// with callbacks. FILE is its redlock.js; it needs the module bluebird.
//
//   lock_node_redlock.js FILE stories PORT...
//   lock_node_redlock.js FILE compete SECONDS TTL PORT...     prints as lock_redis_py.py does
//   lock_node_redlock.js FILE refusals PORT...
'use strict';
const { check, compete, connect, forbidden, hold, main, now, sleep } = require('./lock_node.js');

const Redlock = require(process.argv[2]);
const NAME = 'locks:contested';
/// It calls what node-redis had before version 4.
const OLD = { legacyMode: true };
/// Its locks count on the clock of the wall.
const left = (lock) => (lock.expiration - Date.now()) / 1000;

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
  const client = await connect(port, OLD);
  const once = new Redlock([client], { retryCount: 0 });
  const patient = new Redlock([client], { retryCount: 100, retryDelay: 50 });
  const keys = [`locks:redlock:${port}:a`, `locks:redlock:${port}:b`];
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

async function refusals(port) {
  const client = await connect(port, OLD);
  const locks = new Redlock([client], { retryCount: 0 });
  // The library reports only that it has no lock; the reason is in this event.
  let reason = null;
  locks.on('clientError', (error) => { reason = error; });
  let lock = await locks.lock('locks:redlock:mine', 60000);
  lock = await lock.extend(90000);
  await lock.unlock();
  check(reason === null, reason);
  check(await refused(locks.lock('another', 60000)), 'a lock with another key');
  check(/^NOPERM .*key/.test(reason.message), reason);
  check(await forbidden(client.v4.incr('locks:redlock:mine')), 'another command');
  await client.disconnect();
}

async function attempt(client, ttl) {
  const locks = new Redlock([client], { retryCount: 3, retryDelay: 20, retryJitter: 10 });
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
  await hold(since, until, leaves);
  if (!leaves) await lock.unlock().catch(() => {});
  return undefined;
}

main('node-redlock', process.argv.slice(3), 'every method', stories,
  (seconds, ttl, ports) =>
    compete(seconds, ports, OLD, (client) => attempt(client, ttl)), refusals);
