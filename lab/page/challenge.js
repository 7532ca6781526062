// The challenge: with one rule off, make a judge speak in as few steps as you can. The fewest that are known are those
// of the museum's own schedule, which lab/museum/search.js has found.
"use strict";

var LeaseLab = LeaseLab || {};

Object.assign(LeaseLab.App.prototype, {
  buildChallenge() {
    this.challenged = false;
    this.find("museum-challenge").addEventListener("click", () => this.beginChallenge());
    this.find("challenge-show").addEventListener("click", () => this.visitPiece(this.piece));
  },

  fewest(piece) {
    const steps = piece.link.slice(piece.link.indexOf("steps=") + 6);
    return steps ? steps.split("~").length : 0;
  },
  bare(link) { return link.replace(/&steps=.*$/, ""); },

  beginChallenge() {
    this.stop();
    this.challenged = true;
    this.openLink(`${this.bare(this.piece.link)}&steps=`, 1000);
    this.showChallenge();
    this.say(`${this.goal()} ${this.count()}`, true);
  },

  goal() {
    return `The rule is off: ${this.piece.here.replace(/`/g, "")}. Do something that makes this happen: ` +
      `${LeaseLab.judgedWords(this.piece.oracle)}.`;
  },

  count() {
    const used = this.session.steps.length;
    const known = this.fewest(this.piece);
    const steps = (count) => `${count} ${count === 1 ? "step" : "steps"}`;
    const begin = `${steps(used)} used; the fewest known: ${known}.`;
    const found = this.session.history.findings.filter((one) => one.at <= this.now);
    if (!found.some((one) => one.oracle === this.piece.oracle)) return begin;
    if (this.twinVerdict().worse) return `${begin} It hurts the core with the rule, too: this does not count.`;
    if (this.ownNumbers()) return `${begin} Found, but with other numbers of the group than those of the challenge.`;
    if (used < known) return `Found in ${steps(used)}: fewer than were known! Keep the link.`;
    return used === known ? `Found in ${steps(used)}. Nobody knows a shorter way.` :
      `Found in ${steps(used)}. It can be done in ${known}.`;
  },

  /** Whether the visitor has changed the numbers with which the challenge began. */
  ownNumbers() {
    const own = this.bare(this.session.link());
    if (this.numbersOf !== this.piece) {
      const asked = new LeaseLab.Session(this.whole);
      asked.open(this.piece.link);
      this.numbers = this.bare(asked.link());
      this.numbersOf = this.piece;
      this.twinLink = "";  // the twin's core was used for that
      this.followTwin();
    }
    return own !== this.numbers;
  },

  showChallenge() {
    this.find("challenge").hidden = !this.challenged;
    this.find("museum-facts").hidden = this.challenged;
    this.find("museum-play").disabled = this.challenged;
    // Some bugs need no step.
    this.find("museum-challenge").disabled = this.fewest(this.piece) === 0;
    this.find("museum-challenge").setAttribute("aria-pressed", String(this.challenged));
    if (this.challenged) this.find("challenge-goal").textContent = this.goal();
  },

  judgeChallenge() {
    if (!this.challenged) return;
    const text = this.count();
    const shown = this.find("challenge-count");
    if (shown.textContent === text) return;
    shown.textContent = text;
    if (text.startsWith("Found")) this.say(text, true);
  },
});
