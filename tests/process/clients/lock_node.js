// What the clients of Node that compete for a lock have in common: a connection by node-redis to one
// node, which ends where that one ends, and the line that says from when to when the lock was held.
'use strict';
const redis = require('redis');
const { login, secured, tls } = require('./access.js');

const now = () => Number(process.hrtime.bigint()) / 1e9;
const sleep = (seconds) => new Promise((done) => setTimeout(done, Math.max(0, seconds) * 1000));

async function connect(port, options = {}) {
  const client = redis.createClient({
    ...login,
    ...options,
    socket: {
      host: '127.0.0.1', port, ...(secured ? { tls: true, ...tls } : {}), reconnectStrategy: () => new Error('gone'),
    },
  });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/// Turns at any of the nodes, at another one when that is gone: turn(client) until the time is over.
async function compete(seconds, ports, options, turn) {
  const end = now() + seconds;
  while (now() < end) {
    let client = null;
    try {
      client = await connect(ports[Math.floor(Math.random() * ports.length)], options);
      while (now() < end && client.isReady) await turn(client);
    } catch (error) {
      if (error.code === 'MODULE_NOT_FOUND') throw error;
      await sleep(0.05);
    }
    if (client !== null) await client.disconnect().catch(() => {});
  }
}

/// Does nothing else until then, and says so as lock_redis_py.py does.
async function hold(since, until, leaves) {
  await sleep(until - now() - 0.002);
  while (now() < until);
  console.log(`held ${since.toFixed(6)} ${until.toFixed(6)} ${leaves ? 'left' : 'released'}`);
}

/// stories PORT..., compete SECONDS TTL PORT..., or refusals PORT...: what a user is refused that may only
/// lock. `told`: what the stories are.
async function main(name, words, told, stories, competes, refusals) {
  const [what, ...others] = words;
  try {
    if (what === 'stories') {
      for (const port of others) await stories(Number(port));
      console.log(`${name}: ${told} at ${others.length} nodes`);
    } else if (what === 'refusals') {
      for (const port of others) await refusals(Number(port));
      console.log(`${name}: with no right but that to lock, at ${others.length} nodes`);
    } else {
      const [seconds, ttl, ...ports] = others.map(Number);
      await competes(seconds, ttl, ports);
    }
  } catch (error) {
    console.error(`${name}: ${error.stack}`);
    process.exit(1);
  }
}

function check(condition, what) {
  if (!condition) throw new Error(what);
}

/// Whether it fails as the node refuses what a user may not do.
async function forbidden(promise) {
  try {
    await promise;
    return false;
  } catch (error) {
    if (error instanceof redis.ErrorReply && error.message.startsWith('NOPERM ')) return true;
    throw error;
  }
}

module.exports = { check, compete, connect, forbidden, hold, main, now, sleep };
