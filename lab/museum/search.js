// Looks for the shortest schedule that hurts a core of the lab:
//
//   node search.js CORE.js [--want ORACLE,...] [--seconds N] [--most STEPS] [--numbers "delay=60"] [--first N]
//     [--nodes N] [--from LINK]
//   node search.js CORE.js --single GRAIN [--want ORACLE,...] [--numbers "delay=60"] [--nodes N]
//
// CORE.js is build/lab/lab/lease_lab.js, or build/lab/museum/NAME/core.js. Schedules are drawn: each step stands where
// something happens after the one before, or some time behind it. What hurts is made shorter, and rounder. Clocks stay
// within rho, and do not leap: so the core of this tree is not hurt. Prints each best one so far: steps, oracles, link.
//
// --single tries every schedule of one step, at each multiple of GRAIN ms up to 4 s: what hurts is printed.
"use strict";

const kLeaps = [5, 20, 50, 100, 200, 300, 500, 800, 1000, 1500];
const kMoments = new Set(["role", "vote", "refusal", "lease_lost", "crash", "resume", "transfer", "write", "read",
  "commit", "promise", "delivered", "sent", "start", "leader"]);
const kRare = new Set(["role", "vote", "refusal", "lease_lost", "transfer"]);

function randomOf(seed) {
  let state = (seed * 2654435761 + 12345) >>> 0 || 1;
  return () => {
    state ^= state << 13; state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5; state >>>= 0;
    return state / 4294967296;
  };
}

class Search {
  constructor(core, options) {
    this.options = options;
    this.pool = options.from.map((link) => this.read(link));
    this.use(core);
  }

  use(core) {
    this.open = core.cwrap("lab_open", "string", ["string"]);
    this.run = core.cwrap("lab_run", "string", ["number"]);
    this.violation = core.cwrap("lab_violation", "string", []);
  }

  /** What link() writes. */
  read(link) {
    const words = link.split("&").filter((word) => word && !this.options.begin.split("&").includes(word));
    const steps = (words.find((word) => word.startsWith("steps=")) || "steps=").slice(6).split("~");
    return {
      numbers: words.filter((word) => !word.startsWith("steps=")).join("&"),
      steps: steps.map((step) => ({at: parseInt(step, 10), words: step.slice(step.indexOf(".") + 1)})),
    };
  }

  link(visit) {
    const steps = visit.steps.map((step) => `${step.at}.${step.words}`).join("~");
    return `${this.options.begin}${visit.numbers ? "&" + visit.numbers : ""}&steps=${steps}`;
  }

  /** The records up to 2.5 s behind the last step. */
  play(visit) {
    const wrong = this.open(this.link(visit));
    if (wrong) throw new Error(`${this.link(visit)}: ${wrong}`);
    const last = visit.steps.length ? visit.steps[visit.steps.length - 1].at : 0;
    return this.run(Math.max(1500, last) + 2500);
  }

  /** The oracles that speak, in order; null if none of `want` is among them. Without `want` any counts. */
  hurt(visit, want = this.options.want) {
    const records = this.play(visit);
    if (!this.violation()) return null;
    const found = [...records.matchAll(/"what":"violation","why":"(\w+)"/g)].map((match) => match[1]);
    return want.length && !found.some((oracle) => want.includes(oracle)) ? null : found;
  }

  draw(random) {
    const pick = (list) => list[Math.floor(random() * list.length)];
    if (this.pool.length && random() < 0.6) return this.longer(pick(this.pool), random, pick);
    const visit = {numbers: pick(this.options.numbers), steps: []};
    const count = 1 + Math.floor(random() * this.options.most);
    let at = 500 + Math.floor(random() * 20) * 100;
    while (visit.steps.length < count) {
      at = this.addStep(visit, random, pick, at);
      if (visit.steps.length < count) at = this.nextMoment(visit, random, pick, at);
    }
    return visit;
  }

  addStep(visit, random, pick, at) {
    let next = at;
    for (const words of this.stepWords(random, pick)) {
      visit.steps.push({at: next, words});
      next += pick([0, 1, 10, 50]);
    }
    visit.steps.sort((one, other) => one.at - other.at);
    return next;
  }

  /** One that hurts, with a step or two more: perhaps it hurts in the way that is wanted. */
  longer(visit, random, pick) {
    const copy = {numbers: visit.numbers, steps: [...visit.steps]};
    for (let count = 1 + Math.floor(random() * 2); count > 0; --count) {
      this.addStep(copy, random, pick, this.nextMoment(copy, random, pick, pick(visit.steps).at));
    }
    return copy;
  }

  nextMoment(visit, random, pick, at) {
    if (random() < 0.35) return at + pick(kLeaps);
    const moments = this.play(visit).split("\n").filter((line) => line).map((line) => JSON.parse(line))
      .filter((record) => kMoments.has(record.kind) && record.at / 1e6 >= at &&
        (!["sent", "delivered"].includes(record.kind) || !/append/.test(record.what) || random() < 0.1));
    const rare = moments.filter((record) => kRare.has(record.kind));
    const record = rare.length && random() < 0.6 ? pick(rare.slice(0, 12)) : moments.length ? pick(moments) : null;
    return record ? Math.max(at, Math.ceil(record.at / 1e6) + pick([-1, 0, 0, 0, 1, 2])) : at + pick(kLeaps);
  }

  stepWords(random, pick) {
    const all = [1, 2, 3, 4, 5, 6, 7].slice(0, this.options.nodes);
    const node = pick(all);
    const other = pick(all.filter((one) => one !== node));
    return pick([
      () => [`kill.${node}`], () => [`kill.${node}`, `restart.${node}`], () => [`kill.${node}`, `restart.${node}`],
      () => [`power.${node}`, `restart.${node}`], () => [`pause.${node}.${pick(kLeaps.slice(3))}`],
      () => [`pause.${node}.${pick(kLeaps.slice(3))}`],
      () => [`suspend.${node}.${pick(kLeaps.slice(3))}`],
      () => [`alone.${node}`], () => [`alone.${node}`], () => [`alone.${node}`],
      () => [`reunite.${node}`], () => [`reunite.${node}`],
      () => [`cut.${node}.${other}`], () => [`cut.${node}.${other}`],
      () => [`one_way.${node}.${other}`], () => [`one_way.${node}.${other}`], () => [`join.${node}.${other}`],
      () => [`slow.${node}.${pick([100, 300, 800])}`], () => [`drift.${node}.${pick([-100000, 100000])}`],
      () => [`write.${node}`], () => [`write.${node}`], () => [`read.${node}.${pick(["lease", "quorum"])}`],
      () => [`transfer.${node}.${other}`], () => [`transfer.${node}.${other}`],
    ])();
  }

  /** Fewer steps, fewer other numbers, rounder times. */
  shrink(visit, want = this.options.want) {
    let best = visit;
    const attempt = (steps, numbers) => {
      const tried = {steps, numbers};
      if (!this.hurt(tried, want)) return false;
      best = tried;
      return true;
    };
    for (let again = true; again;) {
      again = false;
      for (let i = best.steps.length - 1; i >= 0; --i) {
        again = attempt(best.steps.filter((_, place) => place !== i), best.numbers) || again;
      }
    }
    if (best.numbers) attempt(best.steps, "");
    for (let i = 0; i < best.steps.length; ++i) {
      for (const grain of [500, 100, 50, 10]) {
        const at = Math.round(best.steps[i].at / grain) * grain;
        const steps = best.steps.map((step, place) => place === i ? {...step, at} : step);
        const ordered = steps.every((step, place) => place === 0 || steps[place - 1].at <= step.at);
        if (ordered && attempt(steps, best.numbers)) break;
      }
    }
    return best;
  }

  /** Each step that stepWords() may draw, once, and no restart of what runs. */
  everyStep() {
    const all = [1, 2, 3, 4, 5, 6, 7].slice(0, this.options.nodes);
    const lengths = kLeaps.slice(3);
    const words = [];
    for (const node of all) {
      words.push(`kill.${node}`, `power.${node}`, `alone.${node}`, `write.${node}`);
      for (const mode of ["lease", "quorum", "log"]) words.push(`read.${node}.${mode}`);
      for (const length of lengths) words.push(`pause.${node}.${length}`, `suspend.${node}.${length}`);
      for (const length of [100, 300, 800]) words.push(`slow.${node}.${length}`);
      for (const rate of [-100000, 100000]) words.push(`drift.${node}.${rate}`);
      for (const other of all) {
        if (other !== node) words.push(`one_way.${node}.${other}`, `transfer.${node}.${other}`);
        if (other > node) words.push(`cut.${node}.${other}`);
      }
    }
    return words;
  }

  async singles(grain, another) {
    let tried = 0;
    const numbers = this.options.numbers.length === 1 ? this.options.numbers[0] : "";
    for (let at = 400; at <= 4000; at += grain) {
      for (const words of this.everyStep()) {
        ++tried;
        const visit = {numbers, steps: [{at, words}]};
        try {
          const oracles = this.hurt(visit);
          if (oracles) console.log(`1 ${oracles.join(",")} ${this.link(visit)}`);
        } catch (error) {
          if (!(error instanceof WebAssembly.RuntimeError)) throw error;
          this.use(await another());
        }
      }
    }
    console.log(`${tried} schedules of one step tried`);
  }

  /** A schedule that hurts as wanted; null if the one that was drawn does not. */
  attempt(seed, first) {
    const drawn = seed - first < this.options.from.length ? this.pool[seed - first] : this.draw(randomOf(seed));
    const some = this.hurt(drawn, []);
    if (some && this.pool.length < 12) {
      const shrunk = this.shrink(drawn, []);
      if (shrunk.steps.length) this.pool.push(shrunk);
    }
    return some && this.hurt(drawn) ? this.shrink(drawn) : null;
  }

  async begin(seconds, first, another) {
    const end = Date.now() + seconds * 1000;
    let best = null;
    let tried = 0;
    let found = 0;
    for (let seed = first; Date.now() < end; ++seed, ++tried) {
      let visit = null;
      try {
        visit = this.attempt(seed, first);
      } catch (error) {
        if (!(error instanceof WebAssembly.RuntimeError)) throw error;
        // The core has checks of its own, and stops at them.
        this.use(await another());
      }
      if (!visit) continue;
      ++found;
      const oracles = this.hurt(visit);
      const uneven = visit.steps.filter((step) => step.at % 10).length;
      const cost = visit.steps.length + (visit.numbers ? 0.5 : 0) + 0.01 * uneven;
      if (best !== null && best <= cost) continue;
      best = cost;
      console.log(`${visit.steps.length} ${oracles.join(",")} ${this.link(visit)}`);
      if (visit.steps.length < 2 && !visit.numbers) break;
      this.options.most = Math.min(this.options.most, visit.steps.length);
    }
    console.log(`${tried} schedules tried, ${found} of them hurt`);
  }
}

function main() {
  process.setMaxListeners(0);  // each core listens
  const words = process.argv.slice(2);
  const value = (name, otherwise) => {
    const place = words.indexOf("--" + name);
    return place < 0 ? otherwise : words[place + 1];
  };
  if (!words.length || words[0].startsWith("--")) {
    console.error("search.js CORE.js [--want ORACLE,...] [--seconds N] [--most STEPS] [--numbers \"delay=60\"] " +
      "[--first N] [--nodes N] [--from LINK]");
    process.exit(2);
  }
  const numbers = value("numbers", "");
  const options = {
    want: value("want", "").split(",").filter((oracle) => oracle), most: Number(value("most", 5)),
    begin: `seed=7&nodes=${value("nodes", "3")}`, nodes: Number(value("nodes", 3)),
    from: value("from", "") ? [value("from", "")] : [],
    numbers: numbers ? [numbers] : ["", "", "", "writes=0", "writes=0", "delay=60", "writes=50"],
  };
  const another = require(require("path").resolve(words[0]));
  const quiet = () => another({printErr: () => {}});
  quiet().then((core) => {
    const search = new Search(core, options);
    if (words.includes("--single")) return search.singles(Math.max(1, Number(value("single", 50))), quiet);
    return search.begin(Number(value("seconds", 60)), Number(value("first", 1)), quiet);
  });
}

main();
