// Asks the WebAssembly of the lab: node core.js CORE.js FIRST LAST [LINK MS]
//
// Prints the trace hash of each rehearsal FIRST..LAST and, of LINK, the hash after so many milliseconds,
// in the form of `leasehold_lab`.
"use strict";

const [, , core, first, last, link, length] = process.argv;
require(require("path").resolve(core))().then((lab) => {
  const rehearse = lab.cwrap("lab_rehearse", "string", ["number"]);
  for (let seed = Number(first); seed <= Number(last); ++seed) {
    console.log(`${seed} ${rehearse(seed)}`);
  }
  if (link === undefined) return;
  const wrong = lab.cwrap("lab_open", "string", ["string"])(link);
  if (wrong) throw new Error(wrong);
  const begin = process.hrtime.bigint();
  const lines = lab.cwrap("lab_run", "string", ["number"])(Number(length));
  const taken = Number(process.hrtime.bigint() - begin) / 1e6;
  const hash = lab.cwrap("lab_hash", "string", [])();
  console.log(`link ${hash} ${lines.split("\n").length - 1} ${taken.toFixed(1)}`);
});
