// node-redis, unmodified: node_redis.js PORT PORT PORT (of the nodes). Prints what it did.
'use strict';
const redis = require('redis');

function check(condition, what) {
  if (!condition) {
    console.error(`node-redis: ${what}`);
    process.exit(1);
  }
}

async function oneNode(port) {
  const client = redis.createClient({ socket: { host: '127.0.0.1', port }, name: 'node' });
  client.on('error', (error) => check(false, error));
  await client.connect();
  const key = `node:${port}`;
  check((await client.set(key, 'value')) === 'OK', 'SET');
  check((await client.get(key)) === 'value', 'GET');
  check((await client.set(key, 'x', { NX: true })) === null, 'SET NX');
  check((await client.mSet([`${key}:a`, '1', `${key}:b`, '2'])) === 'OK', 'MSET');
  const values = await client.mGet([`${key}:a`, 'nothing', `${key}:b`]);
  check(JSON.stringify(values) === '["1",null,"2"]', `MGET ${values}`);
  check((await client.incrBy(`${key}:a`, 4)) === 5, 'INCRBY');
  check((await client.clientGetName()) === 'node', 'the name');
  const results = await client.multi().set(key, '1').incr(key).get(key).exec();
  check(JSON.stringify(results) === '["OK",2,"2"]', `MULTI ${results}`);
  const found = [];
  for await (const name of client.scanIterator({ MATCH: `${key}*`, COUNT: 2 })) found.push(name);
  check(found.length === 3, `SCAN found ${found}`);
  const many = await Promise.all(Array.from({ length: 500 }, () => client.incr(`${key}:a`)));
  check(many[499] === 505, 'a pipeline');
  await client.executeIsolated(async (isolated) => {
    await isolated.watch(key);
    await client.set(key, 'changed');
    let aborted = false;
    try {
      await isolated.multi().set(key, 'lost').exec();
    } catch (error) {
      aborted = error instanceof redis.WatchError;
    }
    check(aborted, 'WATCH');
  });
  check((await client.get(key)) === 'changed', 'after WATCH');
  await client.quit();
}

async function notifications(ports) {
  const heard = [];
  const listeners = [];
  for (const port of ports) {
    const client = redis.createClient({ socket: { host: '127.0.0.1', port } });
    client.on('error', (error) => check(false, error));
    await client.connect();
    await client.subscribe('__keyspace@0__:node:heard', (what) => heard.push(what));
    await client.pSubscribe('__keyevent@*__:del', (key, channel) => heard.push(`${channel} ${key}`));
    listeners.push(client);
  }
  const writer = redis.createClient({ socket: { host: '127.0.0.1', port: ports[0] } });
  await writer.connect();
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
    check((await client.get('nothing')) === null, 'GET after UNSUBSCRIBE');
    await client.quit();
  }
  await writer.quit();
}

async function cluster(ports) {
  const client = redis.createCluster({
    rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })),
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
  for (const port of ports) await oneNode(port);
  await notifications(ports);
  await cluster(ports);
  console.log('node-redis: commands, MULTI, WATCH, SCAN, keyspace notifications, the cluster client');
  process.exit(0);
})().catch((error) => check(false, error.stack));
