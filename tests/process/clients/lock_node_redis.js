// The protocol of node-redlock over node-redis, for Debian has no lock library for Node: the scripts
// do what those of its versions 4 and 5 do (blanks and comments of a text do not count), are sent by
// their digest first, and validity is counted as published: from before the request, less the drift.
//
//   lock_node_redis.js stories PORT...
//   lock_node_redis.js compete SECONDS TTL PORT...     prints as lock_redis_py.py does
//   lock_node_redis.js refusals PORT...
'use strict';
const crypto = require('crypto');
const { check, compete, connect, forbidden, hold, main, now, sleep } = require('./lock_node.js');

const NAME = 'locks:contested';
const MARGIN = 0.1;
const each = (body) => `for i, key in ipairs(KEYS) do ${body} end`;
const setAll = each('redis.call("set", key, ARGV[1], "PX", ARGV[2])') + ' return #KEYS';
const scripts = {
  acquire: each('if redis.call("exists", key) == 1 then return 0 end') + ' ' + setAll,
  extend: each('if redis.call("get", key) ~= ARGV[1] then return 0 end') + ' ' + setAll,
  release: 'local count = 0 ' +
    each('if redis.call("get", key) == ARGV[1] then redis.pcall("del", key) count = count + 1 end') +
    ' return count',
};

async function run(client, name, keys, args) {
  const options = { keys, arguments: args.map(String) };
  const digest = crypto.createHash('sha1').update(scripts[name]).digest('hex');
  try {
    return await client.evalSha(digest, options);
  } catch (error) {
    if (!error.message.startsWith('NOSCRIPT')) throw error;
    return client.eval(scripts[name], options);
  }
}

async function stories(port) {
  const client = await connect(port);
  const keys = [`locks:node:${port}:a`, `locks:node:${port}:b`];
  check((await run(client, 'acquire', keys, ['me', 60000])) === 2, 'acquire');
  check((await run(client, 'acquire', [keys[1]], ['you', 60000])) === 0, 'a second acquire');
  check((await run(client, 'extend', keys, ['you', 60000])) === 0, 'an extension by another');
  check((await run(client, 'extend', keys, ['me', 90000])) === 2, 'extend');
  const left = await client.pTTL(keys[0]);
  check(left > 89000 && left <= 90000, `extended to ${left}`);
  check((await run(client, 'release', keys, ['you'])) === 0, 'a release by another');
  check((await run(client, 'release', keys, ['me'])) === 2, 'release');
  check((await client.exists(keys)) === 0, 'behind the release');
  check((await client.set(keys[0], 'v', { EX: 100, NX: true })) === 'OK', 'SET EX NX');
  check((await client.expire(keys[0], 50)) === true, 'EXPIRE');
  check((await client.ttl(keys[0])) === 50, 'TTL');
  await client.quit();
}

async function refusals(port) {
  const client = await connect(port);
  const keys = ['locks:node:mine', 'locks:mine too'];
  check((await run(client, 'acquire', keys, ['me', 60000])) === 2, 'acquire');
  check((await run(client, 'extend', keys, ['me', 90000])) === 2, 'extend');
  for (const name of ['acquire', 'extend', 'release']) {
    check(await forbidden(run(client, name, ['locks:node:mine', 'another'], ['me', 60000])), `${name} of another key`);
  }
  check((await run(client, 'release', keys, ['me'])) === 2, 'release');
  check(await forbidden(client.incr('locks:node:mine')), 'another command');
  await client.quit();
}

async function attempt(client, ttl) {
  const value = crypto.randomBytes(16).toString('hex');
  const sent = now();
  if ((await run(client, 'acquire', [NAME], [value, ttl * 1000])) !== 1) return sleep(0.02);
  const since = now();
  const mine = sent + ttl - MARGIN;
  if (since >= mine) return undefined;
  const leaves = Math.random() < 0.3;
  const until = leaves ? mine : Math.min(mine, since + Math.random() * 0.05);
  await hold(since, until, leaves);
  if (!leaves) await run(client, 'release', [NAME], [value]);
  return undefined;
}

main('node-redis', process.argv.slice(2), 'the protocol of node-redlock', stories,
  (seconds, ttl, ports) =>
    compete(seconds, ports, {}, (client) => attempt(client, ttl)), refusals);
