// ioredis, unmodified: ioredis.js PORT PORT PORT (of the nodes). Prints what it did.
'use strict';
const Redis = require('ioredis');
const { version } = require('ioredis/package.json');
const { login, refusals, secured, tls, told } = require('./access.js');

function check(condition, what) {
  if (!condition) {
    console.error(`ioredis: ${what}`);
    process.exit(1);
  }
}

/// One command of a client that does not try again. Throws the first of its errors.
async function attempt(port, user, how, words) {
  const client = new Redis({ host: '127.0.0.1', port, tls: how, ...user, lazyConnect: true, retryStrategy: null });
  let first = null;
  client.on('error', (error) => { first = first || error; });
  try {
    await client.connect();
    return await client.call(...words);
  } catch (error) {
    throw first || error;
  } finally {
    client.disconnect();
  }
}

async function oneNode(port) {
  const client = new Redis({ host: '127.0.0.1', port, tls, ...login });
  client.on('error', (error) => check(false, error));
  const key = `io:${port}`;
  check((await client.set(key, 'value')) === 'OK', 'SET');
  check((await client.get(key)) === 'value', 'GET');
  check((await client.set(key, 'x', 'NX')) === null, 'SET NX');
  check((await client.mset(`${key}:a`, 1, `${key}:b`, 2)) === 'OK', 'MSET');
  const values = await client.mget(`${key}:a`, 'io:nothing', `${key}:b`);
  check(JSON.stringify(values) === '["1",null,"2"]', `MGET ${values}`);
  const bytes = Buffer.from([0, 255, 13, 10]);
  await client.set(`${key}:b`, bytes);
  check(bytes.equals(await client.getBuffer(`${key}:b`)), 'binary values');
  const results = await client.multi().set(key, 1).incr(key).get(key).exec();
  check(JSON.stringify(results) === '[[null,"OK"],[null,2],[null,"2"]]', `MULTI ${results}`);
  const line = client.pipeline();
  for (let i = 0; i < 1000; i++) line.incr(`${key}:n`);
  check((await line.exec())[999][1] % 1000 === 0, 'a pipeline');
  const found = [];
  for await (const names of client.scanStream({ match: `${key}*`, count: 2 })) found.push(...names);
  check(found.length === 4, `SCAN found ${found}`);
  await client.quit();
}

async function cluster(ports) {
  const nodes = ports.map((port) => ({ host: '127.0.0.1', port }));
  const client = new Redis.Cluster(nodes, { redisOptions: { tls, ...login }, scaleReads: 'slave' });
  client.on('error', (error) => check(false, error));
  for (let i = 0; i < 50; i++) await client.set(`io:cluster:${i}`, i);
  for (let i = 0; i < 50; i++) check((await client.get(`io:cluster:${i}`)) === String(i), 'cluster GET');
  await client.quit();
}

(async () => {
  const ports = process.argv.slice(2).map(Number);
  for (const port of ports) {
    await oneNode(port);
    if (secured) {
      await refusals((user, how, words) => attempt(port, user, how, words), Redis.ReplyError, check);
    }
  }
  await cluster(ports);
  console.log(`ioredis ${version}: commands, binary values, a pipeline, MULTI, SCAN, the cluster client${told}`);
  process.exit(0);
})().catch((error) => check(false, error.stack));
