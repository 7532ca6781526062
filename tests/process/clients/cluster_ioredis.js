// The cluster client of ioredis, unmodified: cluster_ioredis.js PORT PORT PORT (of the nodes). Writes
// and reads back until its input ends; a line for each value that was acknowledged ("ok N"), and for
// each call that failed ("failed WHY").
'use strict';
const Redis = require('ioredis');
const { login, tls } = require('./access.js');

let ended = false;
process.stdin.on('end', () => { ended = true; });
process.stdin.resume();
const nodes = process.argv.slice(2).map((port) => ({ host: '127.0.0.1', port: Number(port) }));
const client = new Redis.Cluster(nodes, { redisOptions: { tls, ...login, commandTimeout: 3000 } });
client.on('error', (error) => console.log(`failed ${error.message}`));

(async () => {
  for (let number = 1; !ended; number++) {
    try {
      if ((await client.set(`ioredis:${number}`, number)) !== 'OK') throw new Error('SET');
      console.log(`ok ${number}`);
      const read = await client.get(`ioredis:${number}`);
      if (read !== String(number)) console.log(`wrong ${number} ${read}`);
    } catch (error) {
      console.log(`failed ${error.message}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  process.exit(0);
})();
