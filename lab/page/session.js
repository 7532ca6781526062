// One visit: its link, the core that runs it, and what has happened up to now. Going back is a replay
// from the seed and the steps.
"use strict";

var LeaseLab = LeaseLab || {};

/** Of a visit: one for each replica, and for each spare node. */
LeaseLab.laneCount = (settings) => (settings.nodes + (settings.spare || 0)) * (settings.groups || 1);

LeaseLab.Session = class {
  constructor(core) {
    this.use(core);
    this.longest = 600000;
    this.reach = 0;
  }

  /** Another core from the next open() on. */
  use(core) {
    this.core = core;
    this.calls = {
      open: core.cwrap("lab_open", "string", ["string"]),
      add: core.cwrap("lab_add", "string", ["string"]),
      run: core.cwrap("lab_run", "string", ["number"]),
      hash: core.cwrap("lab_hash", "string", []),
      refusal: core.cwrap("lab_refusal", "string", []),
      link: core.cwrap("lab_link", "string", []),
      check: core.cwrap("lab_check", "string", ["string"]),
      usable: core.cwrap("lab_usable", "number", []),
    };
  }

  /** Begins a visit. Returns what is wrong with the link; "" if nothing is. */
  open(link) {
    const visit = link.split("&").filter((word) => word !== "compare=1").join("&");
    const wrong = this.calls.open(visit);
    if (wrong) return wrong;
    this.settings = {};
    this.steps = [];
    for (const word of this.calls.link().split("&")) {
      const mark = word.indexOf("=");
      const value = word.slice(mark + 1);
      if (word.startsWith("steps=")) this.steps = value ? value.split("~") : [];
      else this.settings[word.slice(0, mark)] = Number(value);
    }
    this.usable = this.calls.usable() / 1e6;
    const founders = this.settings.nodes * LeaseLab.groupCount(this.settings);
    this.history = new LeaseLab.History(LeaseLab.laneCount(this.settings), founders);
    if (this.settings.groups > 1) this.history.names = LeaseLab.namesOf(this.settings);
    this.reach = 0;
    this.take(0);
    return "";
  }

  linkOf(settings, steps) {
    const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    return `${words.join("&")}&steps=${steps.join("~")}`;
  }

  link() { return this.linkOf(this.settings, this.steps); }
  hash() { return this.calls.hash(); }

  /** Which step of what was played names a message that was not under way; "" if none does. */
  refusal() { return this.calls.refusal(); }

  /** The instant of the last step about a message; 0: there is none. */
  lastMessageStep() { return Math.max(0, ...this.steps.filter(LeaseLab.isAboutMessage).map(this.timeOf)); }

  take(end) {
    for (const line of this.calls.run(end).split("\n")) {
      if (line) LeaseLab.feedLanes(this.history, this.settings, JSON.parse(line));
    }
    this.reach = end;
  }

  /** Simulates up to this instant, if that has not been done; for `budget` ms of the visitor's time at
   *  most. False: that was not enough. */
  runTo(t, budget = Infinity) {
    const end = Math.min(Math.ceil(t), this.longest);
    const begin = performance.now();
    while (this.reach < end && performance.now() - begin < budget) {
      this.take(Math.min(end, this.reach + 500));
    }
    return this.reach >= end;
  }

  /** Replays up to `t` with these steps. */
  replay(steps, t) {
    const wrong = this.open(this.linkOf(this.settings, steps));
    if (!wrong) this.runTo(t);
    return wrong;
  }

  timeOf(step) { return Number(step.slice(0, step.indexOf("."))); }

  /** A step of the visitor at `t`. What was ahead, steps included, is forgotten. Returns what is
   *  wrong with it; "" if nothing is. */
  act(t, words) {
    const at = Math.min(Math.ceil(t), this.longest);
    const kept = this.steps.filter((step) => this.timeOf(step) <= at);
    if (at < this.reach || kept.length < this.steps.length) this.replay(kept, at);
    this.runTo(at);
    const step = `${at}.${words}`;
    const wrong = this.calls.add(step);
    if (wrong) return wrong;
    this.steps.push(step);
    this.take(at);
    return "";
  }

  undo(t) {
    const step = this.steps[this.steps.length - 1];
    if (!step) return "";
    this.replay(this.steps.slice(0, -1), Math.min(t, this.reach));
    return step;
  }

  /** Other numbers for the same seed and steps, except those about messages: others are sent then. Returns why
   *  the core refuses them. */
  change(settings, t) {
    const fewer = LeaseLab.laneCount(settings) < LeaseLab.laneCount(this.settings);
    const others = this.settings.spare && settings.nodes !== this.settings.nodes;
    const steps = fewer || others ? [] : this.steps.filter((step) => !LeaseLab.isAboutMessage(step));
    const wrong = this.calls.check(this.linkOf(settings, steps));
    if (wrong) return wrong;
    this.settings = settings;
    return this.replay(steps, t);
  }

  /** The instant of the next event that people read, after `t`. */
  next(t) {
    const told = this.history.told;
    for (let end = this.reach; end <= Math.min(t + 3000, this.longest); end += 5) {
      this.runTo(end);
      const place = LeaseLab.lastAt(this.interesting(), t + 0.0005) + 1;
      if (place < this.interesting().length) return this.interesting()[place].at;
    }
    return Math.min(t + 100, this.longest, told ? Infinity : 0);
  }

  /** The instant of the newest event before `t`. */
  before(t) {
    const list = this.interesting();
    const place = LeaseLab.lastAt(list, t - 0.0005);
    return place < 0 ? 0 : list[place].at;
  }

  /** What a step moves to: events that people read, and edges of leases. */
  interesting() {
    const history = this.history;
    const edges = history.nodes.reduce((sum, node) =>
      node.leases.reduce((all, window) => all + window.edges.length, sum), 0);
    const size = history.told.length + edges;
    if (this.listed !== history || this.listSize !== size) {
      const all = history.told.map((one) => ({at: one.at}));
      for (const node of history.nodes) {
        for (const window of node.leases) for (const edge of window.edges) all.push({at: edge.at});
      }
      all.sort((a, b) => a.at - b.at);
      this.list = all;
      this.listed = history;
      this.listSize = size;
    }
    return this.list;
  }
};
