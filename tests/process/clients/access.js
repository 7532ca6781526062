// How the Node programs of this folder reach a node: plain, or by TLS and as a user if the test has set
// ACCESS_* (secured.py).
'use strict';
const fs = require('fs');

const { env } = process;
const secured = 'ACCESS_CA' in env;
const read = (name) => fs.readFileSync(env[`ACCESS_${name}`]);

const login = secured ? { username: env.ACCESS_USER, password: env.ACCESS_PASSWORD } : {};
/// Options of Node's tls.connect, or undefined.
const tls = secured ? { ca: read('CA') } : undefined;

/// What a node refuses, and what the error then says. attempt(login, tls, words): the reply, or it throws the
/// first error of the library. `replyError`: the library's class of errors that the node sent.
async function refusals(attempt, replyError, check) {
  const certificate = (prefix) => ({ ...tls, cert: read(`${prefix}CERT`), key: read(`${prefix}KEY`) });
  const wrong = { ...login, password: 'wrong' };
  const cases = [
    ['a wrong password', wrong, tls, ['PING'], replyError, /^WRONGPASS /],
    ['no user', {}, tls, ['PING'], replyError, /^NOAUTH /],
    ['another key', login, tls, ['GET', 'forbidden'], replyError, /^NOPERM .*key/],
    ['a command of operators', login, tls, ['LEASEHOLD', 'MEMBER', 'LIST'], replyError, /^NOPERM .*member/],
    ['a server of another authority', login, { ca: read('OTHER_CA') }, ['PING'], Error, /certificate/],
    ['a certificate of another authority', login, certificate('OTHER_'), ['PING'], Error, /alert unknown ca/],
  ];
  for (const [what, user, how, words, kind, says] of cases) {
    let error = null;
    let reply = null;
    try {
      reply = await attempt(user, how, words);
    } catch (caught) {
      error = caught;
    }
    check(error !== null, `${what} was accepted: ${reply}`);
    check(error instanceof kind && says.test(error.message), `${what}: ${error.stack}`);
  }
  const who = await attempt({}, certificate(''), ['ACL', 'WHOAMI']);
  check(who === env.ACCESS_USER, `the user of a certificate is ${who}`);
}

const told = secured ? '; by TLS as a user, and what that user is refused' : '';

module.exports = { login, refusals, secured, tls, told };
