// The time without a leader when a leader is stopped, with and without what closes it.
"use strict";

var LeaseLab = LeaseLab || {};

/** In ms: when the leader is stopped; how long it drains after a transfer; how long a cold leader warms up. */
LeaseLab.gap = {stop: 3000, drain: 200, warmup: 1000, reads: 10};

/** The longest time without an answer around the stop; a cold leader answers nothing for a while. */
LeaseLab.gapIn = function (history, stopped, warm) {
  const {stop, warmup} = LeaseLab.gap;
  const leads = Math.min(...history.nodes.filter((node) => node.id !== stopped)
    .flatMap((node) => node.leases.map((lease) => lease.at)).filter((at) => at >= stop));
  const cold = (at) => !warm && at >= leads && at < leads + warmup;
  const ends = history.nodes.flatMap((node) => node.operations)
    .filter((one) => one.kind === "read" && !one.failure && one.end < Infinity && one.end >= stop - 100 && !cold(one.end))
    .map((one) => one.end).sort((a, b) => a - b);
  // Without an answer behind the stop there is no end of the gap to be seen.
  if (!ends.length || ends[ends.length - 1] < stop + warmup) return Infinity;
  return Math.max(0, ...ends.slice(1).map((end, place) => end - ends[place]));
};

/** The two visits, with the settings of the page: `session` plays them. Null: nobody leads then. */
LeaseLab.measureGap = function (session, settings, transfers, warm) {
  const {stop, drain, warmup, reads} = LeaseLab.gap;
  const own = {...settings, reads, known: 0};
  const play = (steps, until) => {
    const wrong = session.open(session.linkOf(own, steps));
    if (wrong) throw new Error(wrong);
    session.runTo(until);
    return {history: session.history, link: `${session.link()}&t=${until}`};
  };
  const leader = play([], stop).history.leaderAt(stop);
  if (!leader) return null;
  const next = leader.id % settings.nodes + 1;
  const until = stop + 3 * settings.lease + 3 * settings.election + 2 * warmup;
  const plain = play([`${stop}.kill.${leader.id}`], until);
  const steps = transfers ? [`${stop}.transfer.${leader.id}.${next}`, `${stop + drain}.kill.${leader.id}`] :
    [`${stop}.kill.${leader.id}`];
  const cured = play(steps, until);
  return {
    without: LeaseLab.gapIn(plain.history, leader.id, false), withCures: LeaseLab.gapIn(cured.history, leader.id, warm),
    links: [plain.link, cured.link],
  };
};

Object.assign(LeaseLab.App.prototype, {
  listenToGap() {
    this.find("gap-run").addEventListener("click", () => this.measure());
    for (const id of ["cure-transfer", "cure-warm"]) this.find(id).addEventListener("change", () => this.measure());
  },

  /** By a core of its own. */
  async measure() {
    if (this.session.recorded) return this.say(LeaseLab.readOnly, true);
    this.gapCore = this.gapCore || createLeaseLab();
    const core = await this.gapCore;
    this.gapSession = this.gapSession || new LeaseLab.Session(core);
    const settings = {...this.session.settings};
    if (settings.groups) settings.groups = 1;
    const words = this.find("gap-words");
    let found = null;
    try {
      found = LeaseLab.measureGap(this.gapSession, settings, this.find("cure-transfer").checked, this.find("cure-warm").checked);
    } catch (error) {
      words.textContent = `It cannot be measured: ${error.message}.`;
      return;
    }
    this.describeHalf(settings);
    if (!found) {
      words.textContent = `With these numbers nobody leads at ${LeaseLab.gap.stop} ms.`;
      return;
    }
    const shown = (gap) => gap === Infinity ? "no end of the gap" : `${Math.round(gap)} ms`;
    words.textContent = `Longest time without an answer: ${shown(found.without)} without the first and the third cure, ` +
      `${shown(found.withCures)} with what you chose. `;
    found.links.forEach((link, place) => {
      const anchor = document.createElement("a");
      anchor.href = `#${link}`;
      anchor.textContent = ["See it without", "See it with"][place];
      words.append(anchor, " ");
    });
  },

  /** Renewal at half of the lease: the core has no such switch. */
  describeHalf(settings) {
    const half = Math.floor(settings.lease / 2);
    const wrong = this.gapSession.calls.check(this.gapSession.linkOf({...settings, heartbeat: half}, []));
    this.find("gap-half").textContent = wrong ? `The second cure cannot be switched off: with R = D/2 = ${half} ms one lost ` +
      `renewal would cost the lease, and the core refuses it (${wrong}).` : `The core takes R = D/2 = ${half} ms.`;
  },
});
