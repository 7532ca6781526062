// The museum: variants of the core, each with one published bug in it, and the shortest schedule that hurts. A variant
// is made in the page from the core and what differs. Below its lanes stand those of the core with the rule.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.museum = LeaseLab.museum || [];

/** What a judge has found, in words. */
LeaseLab.judged = {
  stale_read: "a reader gets an old value", two_leases: "two leaders hold a valid lease at one instant",
  lease_outlives_promise: "a lease lasts longer than the promises that it rests on",
  lease_and_newer_commit: "a lease is valid although a later leader has committed",
  lease_view_order: "something overtakes the lease that readers see",
  lease_numbers: "a lease could outlast its promises",
  told_before_durable: "a message says what a crash would take back",
  vote_durability: "a vote leaves before it is durable",
  election_safety: "two leaders in one term", leader_completeness: "a leader lacks a committed entry",
  monotonic: "something goes back that only rises", read_round: "a read is confirmed by a round from before it",
  lost_commit: "a committed entry is lost", log_matching: "two nodes commit different entries at one place",
  state_machine_safety: "two nodes apply different entries", disk_log: "the core counts on what a crash would remove",
  liveness: "nothing is answered any more",
};
LeaseLab.judgedWords = (oracle) => LeaseLab.judged[oracle] || oracle.replace(/_/g, " ");

Object.assign(LeaseLab.App.prototype, {
  // Before the address is read: it may name a piece.
  buildMuseum(core) {
    this.whole = core;
    this.piece = null;
    this.twinPainter = new LeaseLab.Painter(this.find("twin-canvas"));
    this.find("museum").hidden = LeaseLab.museum.length === 0;
    const pick = this.find("museum-pick");
    for (const piece of LeaseLab.museum) {
      const option = document.createElement("option");
      option.value = piece.mutant;
      option.textContent = `${piece.hazard}: ${piece.title}`;
      pick.append(option);
    }
    const press = (id, action) => this.find(id).addEventListener("click", action);
    press("museum", () => this.visitPiece(LeaseLab.museum[0]));
    press("museum-back", () => this.visitPiece(this.neighbour(-1)));
    press("museum-next", () => this.visitPiece(this.neighbour(1)));
    press("museum-play", () => this.playPiece());
    press("museum-end", () => this.leaveMuseum());
    pick.addEventListener("change", () => this.visitPiece(LeaseLab.museum.find((one) => one.mutant === pick.value)));
    window.addEventListener("error", (event) => this.leaveStopped(event, event.error));
    window.addEventListener("unhandledrejection", (event) => this.leaveStopped(event, event.reason));
    this.buildChallenge();
  },

  /** The core has checks of its own, and a bug may run into one: then nothing of it can be used any more. */
  leaveStopped(event, error) {
    if (!this.piece || !(error instanceof WebAssembly.RuntimeError)) return;
    event.preventDefault();
    const {hazard, title} = this.piece;
    this.playing = false;
    this.find("play").textContent = "▶ Play";
    this.enterWhole(true);
    this.say(`With this bug (${hazard}: ${title}) the core has met one of its own checks, and has stopped. ` +
      "This is the core with all rules.", true);
  },

  neighbour(way) {
    const count = LeaseLab.museum.length;
    return LeaseLab.museum[(LeaseLab.museum.indexOf(this.piece) + way + count) % count];
  },

  // ---- The address ----

  pieceWord() { return this.piece ? `&piece=${this.piece.mutant}${this.challenged ? "&challenge=1" : ""}` : ""; },

  /** What is wrong with the piece that the address names; "" if nothing is. */
  wrongPiece(name) {
    const known = !name || LeaseLab.museum.some((piece) => piece.mutant === name);
    return known ? "" : `this page has no piece that is called ${name.slice(0, 40)}`;
  },

  /** True: the core of a piece has to be made first, and the address is read again then. */
  awaitsPiece(text) {
    const words = text.split("&");
    const word = words.find((one) => one.startsWith("piece="));
    const name = word ? word.slice(6) : "";
    const piece = LeaseLab.museum.find((one) => one.mutant === name) || null;
    const challenged = Boolean(piece) && words.includes("challenge=1");
    if (piece === this.piece) {
      this.challenged = challenged;
      this.showPiece();
      return false;
    }
    if (piece) this.enter(piece, challenged).then((entered) => { if (entered) this.openAddress(); });
    else this.enterWhole();
    return Boolean(piece);
  },

  // ---- Which core runs ----

  /** False: it cannot be made, or the visitor has gone on to another one. */
  async enter(piece, challenged) {
    this.stop();
    this.wanted = piece;
    if (piece !== this.piece) {
      this.say("The variant of the core is being made.", true);
      try {
        const bytes = await LeaseLab.patch.variant(leaseLabCore.replace(/^.*,/, ""), piece.difference);
        const core = await createLeaseLab({wasmBinary: bytes});
        if (this.wanted !== piece) return false;
        this.useCore(core);
      } catch (error) {
        this.say(`This browser cannot make the variant: ${error}`, true);
        if (!this.session.history) this.enterWhole(true);
        return false;
      }
    }
    this.piece = piece;
    this.challenged = challenged;
    this.twin = new LeaseLab.Session(this.whole);
    this.twinLink = "";
    this.showPiece();
    return true;
  },

  useCore(core) {
    if (this.session.recorded) this.endRecording();  // what was recorded needs no core
    this.session.use(core);
  },

  enterWhole(opens) {
    this.wanted = this.piece = this.twin = null;
    this.numbersOf = null;
    this.challenged = false;
    this.useCore(this.whole);
    this.showPiece();
    if (opens) this.openLink(LeaseLab.defaultLink, 1500);
  },

  openLink(link, t) {
    const wrong = this.session.open(link);
    if (wrong) return this.say(wrong, true);
    this.find("tour-card").hidden = true;
    this.panel.show(this.session.settings);
    this.panel.clearNote();
    this.changedNodes();
    this.moveTo(t, true);
    this.saveAddress();
  },

  async visitPiece(piece) {
    if (!await this.enter(piece, false)) return;
    this.span = window.innerWidth < 640 ? 700 : 1500;
    this.openLink(piece.link, piece.until);
    this.find("words").textContent = this.verdict();
    this.say(`${piece.hazard}: ${piece.title}. ${piece.shows} ${this.verdict()} ${this.twinVerdict().text}`);
  },

  leaveMuseum() {
    this.stop();
    this.enterWhole(true);
    this.find("museum").focus();
  },

  /** From before the first step to where it hurts. */
  playPiece() {
    this.stop();
    const first = this.session.steps.length ? this.session.timeOf(this.session.steps[0]) : 0;
    this.moveTo(Math.max(0, Math.min(first, this.piece.until) - 150), true);
    this.playUntil = this.piece.until;
    this.toggle();
  },

  // ---- What is shown ----

  showPiece() {
    const piece = this.piece;
    for (const id of ["museum-card", "broken", "twin"]) this.find(id).hidden = !piece;
    if (!piece) return;
    this.find("museum-pick").value = piece.mutant;
    this.find("broken").textContent = `A broken core runs here, with the bug ${piece.mutant}. It is not Leasehold.`;
    const plain = (text) => text.replace(/`/g, "");
    const facts = [["went wrong elsewhere", plain(piece.wrong)], ["seen in", piece.seen],
      ["the rule", plain(piece.here)], ["stands in", piece.closes], ["what one sees", piece.shows]];
    this.find("museum-facts").replaceChildren(...facts.filter((fact) => fact[1]).flatMap(([name, text]) => {
      const parts = [document.createElement("dt"), document.createElement("dd")];
      parts[0].textContent = name;
      parts[1].textContent = text;
      return parts;
    }));
    this.showChallenge();
  },

  /** What the judges say of the variant, up to now. */
  verdict() {
    const found = this.session.history.findings.filter((one) => one.at <= this.now);
    if (!found.length) return "Without the rule: up to now no judge speaks.";
    const words = found.map((one) => `${LeaseLab.judgedWords(one.oracle)} at ${one.at.toFixed(0)} ms`);
    return `Without the rule: ${words.join("; ")}.`;
  },

  /** What they say of the same steps in the core with the rule. */
  twinVerdict() {
    this.followTwin();
    const found = this.twin.history.findings.filter((one) => one.at <= this.now);
    if (!found.length) return {worse: false, text: "With the rule, the same steps: no judge speaks."};
    return {worse: true, text: "With the rule, the same steps hurt, too: a clock was worse than ρ allows. " +
      `${LeaseLab.judgedWords(found[0].oracle)} at ${found[0].at.toFixed(0)} ms.`};
  },

  followTwin() {
    const link = this.session.link();
    if (this.twinLink !== link) {
      this.twin.open(link);
      this.twinLink = link;
    }
    this.twin.runTo(this.now);
  },

  fitTwin(nodes) {
    const gutter = this.find("twin-gutter");
    if (gutter.children.length === nodes) return;
    gutter.replaceChildren(...this.twin.history.nodes.map((node) => {
      const label = document.createElement("span");
      label.textContent = window.innerWidth < 640 ? node.id : `Node ${node.id}`;
      return label;
    }));
    this.find("twin-canvas").style.setProperty("--height", `${24 + 86 * nodes}px`);
  },

  paintTwin(view) {
    if (!this.piece) return;
    const {worse, text} = this.twinVerdict();
    const words = this.find("twin-words");
    words.className = worse ? "worse" : "";
    if (words.textContent !== text) words.textContent = text;
    this.fitTwin(LeaseLab.laneCount(this.twin.settings));
    this.twinPainter.readColours();
    this.twinPainter.delay = this.twin.settings.delay;
    this.twinPainter.draw(this.twin.history, view, this.now, 0, this.twin.usable, this.twin.steps);
    this.judgeChallenge();
  },
});
