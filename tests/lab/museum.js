// Plays the pieces of the museum as the page does: node museum.js CORE.js PIECES.js PATCH.js
//
// The variant is made from the core and what differs, by the page's own code. By its instant the judge that the piece
// names has to speak in the variant, and none in the core.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [, , corePath, piecesPath, patchPath] = process.argv;
const createLeaseLab = require(path.resolve(corePath));
const page = vm.createContext({LeaseLab: {}, atob, Blob, Response, DecompressionStream, Uint8Array});
for (const file of [piecesPath, patchPath]) {
  vm.runInContext(fs.readFileSync(file, "utf8").replace(/^var LeaseLab = .*$/m, ""), page, {filename: file});
}
const base64 = /["']data:application\/octet-stream;base64,([A-Za-z0-9+/=]+)["']/.exec(fs.readFileSync(corePath, "utf8"))[1];

/** The oracles that have spoken by `until`. */
function findings(core, piece) {
  const wrong = core.cwrap("lab_open", "string", ["string"])(piece.link);
  if (wrong) throw new Error(`${piece.mutant}: ${wrong}`);
  const records = core.cwrap("lab_run", "string", ["number"])(piece.until);
  return records.split("\n").filter((line) => line).map((line) => JSON.parse(line))
    .filter((record) => record.kind === "mark" && record.what === "violation").map((record) => record.why);
}

async function main() {
  process.setMaxListeners(0);  // each core listens
  const core = await createLeaseLab();
  const faults = [];
  for (const piece of page.LeaseLab.museum) {
    const bytes = await page.LeaseLab.patch.variant(base64, piece.difference);
    const variant = await createLeaseLab({wasmBinary: bytes});
    const found = findings(variant, piece);
    if (!found.includes(piece.oracle)) faults.push(`${piece.mutant}: ${piece.oracle} is silent; ${found.join(" ")} speaks`);
    const sound = findings(core, piece);
    if (sound.length) faults.push(`${piece.mutant}: in the core with the rule ${sound.join(" ")} speaks`);
  }
  for (const fault of faults) console.log(fault);
  console.log(`${page.LeaseLab.museum.length} pieces, ${faults.length} of them do not hurt, or not only without their rule`);
  process.exit(faults.length || !page.LeaseLab.museum.length ? 1 : 0);
}

main().catch((error) => {
  console.log(String(error && error.stack || error));
  process.exit(1);
});
