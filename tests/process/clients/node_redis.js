// node-redis, unmodified: node_redis.js PORT PORT PORT (of the nodes). Prints what it did.
'use strict';
const redis = require('redis');
const { version } = require('redis/package.json');
const { login, refusals, secured, tls, told } = require('./access.js');

function check(condition, what) {
  if (!condition) {
    console.error(`node-redis: ${what}`);
    process.exit(1);
  }
}

const socketOf = (how) => ({ host: '127.0.0.1', ...(how ? { tls: true, ...how } : {}) });

async function connect(port, options = {}) {
  const client = redis.createClient({ socket: { ...socketOf(tls), port }, ...login, ...options });
  client.on('error', (error) => check(false, error));
  await client.connect();
  return client;
}

/// One command of a client that does not try again. Throws the first of its errors.
async function attempt(port, user, how, words) {
  const socket = { ...socketOf(how), port, reconnectStrategy: () => new Error('gone') };
  const client = redis.createClient({ socket, ...user });
  let first = null;
  client.on('error', (error) => { first = first || error; });
  try {
    await client.connect();
    return await client.sendCommand(words);
  } catch (error) {
    throw first || error;
  } finally {
    if (client.isOpen) await client.disconnect();
  }
}

async function oneNode(port) {
  const client = await connect(port, { name: 'node' });
  const key = `node:${port}`;
  check((await client.set(key, 'value')) === 'OK', 'SET');
  check((await client.get(key)) === 'value', 'GET');
  check((await client.set(key, 'x', { NX: true })) === null, 'SET NX');
  check((await client.mSet([`${key}:a`, '1', `${key}:b`, '2'])) === 'OK', 'MSET');
  const values = await client.mGet([`${key}:a`, 'node:nothing', `${key}:b`]);
  check(JSON.stringify(values) === '["1",null,"2"]', `MGET ${values}`);
  check((await client.incrBy(`${key}:a`, 4)) === 5, 'INCRBY');
  check((await client.clientGetName()) === 'node', 'the name');
  const results = await client.multi().set(key, '1').incr(key).get(key).exec();
  check(JSON.stringify(results) === '["OK",2,"2"]', `MULTI ${results}`);
  const found = [];
  // Since release 5 some keys at a time.
  for await (const names of client.scanIterator({ MATCH: `${key}*`, COUNT: 2 })) found.push(...[names].flat());
  check(found.length === 3, `SCAN found ${found}`);
  const many = await Promise.all(Array.from({ length: 500 }, () => client.incr(`${key}:a`)));
  check(many[499] === 505, 'a pipeline');
  const watching = await connect(port);
  await watching.watch(key);
  await client.set(key, 'changed');
  let aborted = false;
  try {
    await watching.multi().set(key, 'lost').exec();
  } catch (error) {
    aborted = error instanceof redis.WatchError;
  }
  check(aborted, 'WATCH');
  await watching.quit();
  check((await client.get(key)) === 'changed', 'after WATCH');
  await client.quit();
}

async function notifications(ports) {
  const heard = [];
  const listeners = [];
  for (const port of ports) {
    const client = await connect(port);
    await client.subscribe('__keyspace@0__:node:heard', (what) => heard.push(what));
    await client.pSubscribe('__keyevent@*__:del', (key, channel) => heard.push(`${channel} ${key}`));
    listeners.push(client);
  }
  const writer = await connect(ports[0]);
  await writer.set('node:heard', '1');
  await writer.del('node:heard');
  const until = Date.now() + 20000;
  while (heard.length < 3 * ports.length && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const count = (what) => heard.filter((one) => one === what).length;
  for (const what of ['set', 'del', '__keyevent@0__:del node:heard']) {
    check(count(what) === ports.length, `heard ${heard}`);
  }
  for (const client of listeners) {
    await client.unsubscribe();
    await client.pUnsubscribe();
    check((await client.get('node:nothing')) === null, 'GET after UNSUBSCRIBE');
    await client.quit();
  }
  await writer.quit();
}

async function cluster(ports) {
  const client = redis.createCluster({
    rootNodes: ports.map((port) => ({ socket: { ...socketOf(tls), port } })),
    defaults: { socket: socketOf(tls), ...login },
    useReplicas: true,
  });
  client.on('error', (error) => check(false, error));
  await client.connect();
  for (let i = 0; i < 50; i++) await client.set(`node:cluster:${i}`, String(i));
  for (let i = 0; i < 50; i++) {
    check((await client.get(`node:cluster:${i}`)) === String(i), 'cluster GET');
  }
  await client.quit();
}

(async () => {
  const ports = process.argv.slice(2).map(Number);
  for (const port of ports) {
    await oneNode(port);
    if (secured) {
      await refusals((user, how, words) => attempt(port, user, how, words), redis.ErrorReply, check);
    }
  }
  await notifications(ports);
  await cluster(ports);
  console.log(`node-redis ${version}: commands, MULTI, WATCH, SCAN, keyspace notifications, the cluster client${told}`);
  process.exit(0);
})().catch((error) => check(false, error.stack));
