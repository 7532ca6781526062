// Numbers that break an inequality, on request: a core that was compiled without the check of the numbers takes the
// place of the page's, and the page says what is broken, by how much, and what may come of it.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.keptNumbers = {lease: 1000, heartbeat: 100, drift: 100000, margin: 10, rtt: 50, election: 300};

/** What is broken, by how much, and what may go wrong: a text each. */
LeaseLab.brokenWords = function (numbers) {
  const {usable, sure, safety, availability} = LeaseLab.inequalities(numbers);
  const ms = (number) => `${Math.round(number * 10) / 10} ms`;
  const words = [];
  if (!safety.holds && usable > 0) {
    words.push(`Safety is broken by ${ms(usable - sure)}: the leader counts on ${ms(usable)} of each promise, and only ` +
      `${ms(sure)} are sure if clocks are as wrong as ρ allows. Then two nodes may have a lease at once, and a reader ` +
      "may get an old value.");
  } else if (!safety.holds) {
    words.push(`Safety is broken by ${ms(-usable)}: nothing of a promise is left to use. So no leader ever has a lease. ` +
      "Each read asks a quorum: that is slow, and not wrong.");
  }
  if (!availability.holds) {
    const late = 2 * numbers.heartbeat + numbers.rtt - usable;
    const often = numbers.heartbeat - usable / 3;
    words.push(`Availability is broken: ${late >= 0 ? `R + rtt + R is ${ms(late)} above what it may be` :
      `R is ${ms(often)} above U/3`}. One renewal that is lost or late can cost the lease. Then reads ask a quorum, and ` +
      "wait; no reader gets an old value by that.");
  }
  return words;
};

/** The same numbers with the inequalities kept: sigma is zero, or all are the defaults. */
LeaseLab.kept = function (settings) {
  const numbers = {...settings, margin: Math.max(0, settings.margin)};
  delete numbers.unchecked;
  return LeaseLab.brokenWords(numbers).length ? {...numbers, ...LeaseLab.keptNumbers} : numbers;
};

Object.assign(LeaseLab.App.prototype, {
  listenToUnchecked() {
    const box = this.find("unchecked");
    box.disabled = !LeaseLab.unchecked;
    box.addEventListener("change", () => this.switchUnchecked(box.checked));
    window.addEventListener("error", (event) => this.leaveUnchecked(event, event.error));
    window.addEventListener("unhandledrejection", (event) => this.leaveUnchecked(event, event.reason));
  },

  uncheckedRuns() { return Boolean(this.uncheckedCore) && this.session.core === this.uncheckedCore; },

  async makeUnchecked() {
    if (this.uncheckedCore) return;
    this.say("The core without the check is being made.", true);
    const bytes = await LeaseLab.patch.variant(leaseLabCore.replace(/^.*,/, ""), LeaseLab.unchecked);
    this.uncheckedCore = await createLeaseLab({wasmBinary: bytes});
    this.say("The core without the check has been made.", true);
  },

  /** True: the core for this link has to be made first, and `then` is called when it is there. */
  awaitsCore(link, then) {
    this.awaited = null;
    if (!link.split("&").includes("unchecked=1")) {
      if (this.uncheckedRuns()) this.session.use(this.whole);
      return false;
    }
    if (this.uncheckedRuns() || !LeaseLab.unchecked) return false;
    this.awaited = then;
    this.makeUnchecked().then(() => {
      if (this.awaited !== then) return;
      if (this.piece) this.enterWhole();
      this.session.use(this.uncheckedCore);
      then();
    }).catch((error) => this.cannotMake(error));
    return true;
  },

  cannotMake(error) {
    this.say(`This browser cannot make the core without the check: ${error}`, true);
    this.find("unchecked").checked = this.uncheckedRuns();
    if (!this.session.history) this.openLink(LeaseLab.defaultLink, 1500);
  },

  /** In place of a visit that is not there. */
  openDefault() {
    if (this.uncheckedRuns()) this.session.use(this.whole);
    return this.session.open(LeaseLab.defaultLink);
  },

  switchUnchecked(wants) {
    this.stop();
    if (!wants) return this.checkAgain();
    return this.makeUnchecked().then(() => {
      if (this.piece) this.enterWhole();
      this.session.use(this.uncheckedCore);
      this.takeNumbers({...this.session.settings, unchecked: 1});
      this.say("The inequalities may be broken now. A core without the check runs; it is not Leasehold.", true);
    }).catch((error) => this.cannotMake(error));
  },

  checkAgain() {
    const settings = {...this.session.settings};
    delete settings.unchecked;
    const wrong = this.whole.cwrap("lab_check", "string", ["string"])(this.session.linkOf(settings, []));
    if (wrong) {
      this.find("unchecked").checked = true;
      return this.say(`The core with the check refuses these numbers: ${wrong}. Change them first, or press Defaults.`, true);
    }
    this.session.use(this.whole);
    this.takeNumbers(settings);
    return this.say("The core checks its numbers again.", true);
  },

  takeNumbers(settings) {
    const wrong = this.change(settings);
    this.panel.show(this.session.settings);
    this.panel.clearNote();
    if (wrong) this.say(wrong, true);
  },

  /** Of a finding. */
  blame() {
    return this.uncheckedRuns() && !LeaseLab.inequalities(this.session.settings).safety.holds ?
      "The inequality of safety is broken." : "A clock was worse than ρ allows, or the code has a bug.";
  },

  describeUnchecked() {
    const runs = this.uncheckedRuns();
    this.find("unchecked").checked = runs;
    this.find("unchecked-runs").hidden = !runs;
    const broken = runs ? LeaseLab.brokenWords(this.session.settings) : [];
    const text = runs && !broken.length ? "Both inequalities hold. Move the sliders until one does not." : broken.join(" ");
    const words = this.find("consequences");
    words.hidden = !runs;
    words.classList.toggle("broken", broken.length > 0);
    if (words.textContent !== text) words.textContent = text;
  },

  /** Without the check, a core may meet another one of its own: then nothing of it can be used any more. */
  leaveUnchecked(event, error) {
    if (!this.uncheckedRuns() || !(error instanceof WebAssembly.RuntimeError)) return;
    event.preventDefault();
    this.playing = false;
    this.find("play").textContent = "▶ Play";
    this.session.use(this.whole);
    this.uncheckedCore = null;
    this.openLink(LeaseLab.defaultLink, 1500);
    this.say("With these numbers the core has met one of its own checks, and has stopped. This is the core with the check.", true);
  },
});
