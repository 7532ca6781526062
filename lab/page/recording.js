// A trace that was recorded elsewhere, in the place of a visit: time can be dragged, and nothing else.
// docs/formats/trace.md. Nothing in it is believed: it may come from anywhere.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.recordingLimits = {records: 250000, lanes: 16, line: 100000};
LeaseLab.readOnly = "This trace was recorded: it can be looked at and not changed.";

/** What of a process holds for each of its replicas. */
LeaseLab.ofProcess = new Set(["start", "crash", "fail", "pause", "suspend", "resume", "clock", "disk"]);
LeaseLab.roleNames = new Set(["follower", "pre_candidate", "candidate", "leader"]);

/** The history of a recording: lanes are replicas, and their names are not their places. */
LeaseLab.RecordedHistory = class extends LeaseLab.History {
  constructor(lanes) {
    super(lanes.length);
    this.names = lanes.map((lane) => lane.name);
    for (const node of this.nodes) node.roles.push({at: -1e9, end: Infinity, role: "down", term: 0});
    this.longestWay = 0;
  }

  on_start(record, at, node) {
    const told = this.told.length;
    super.on_start(record, at, node);
    // Of a node that runs: here it begins to be seen.
    if (record.why === "recorded") this.told.length = told;
    if (node.clocks.length === 0) node.clocks.push({at: 0, local: 0, rate: 0});
  }

  on_role(record, at, node) {
    if (LeaseLab.roleNames.has(record.what)) super.on_role({why: "", ...record}, at, node);
  }

  on_refusal(record, at, node) { super.on_refusal({why: "", ...record}, at, node); }

  on_fail(record, at, node) {
    super.on_crash(record, at, node);
    this.told[this.told.length - 1].text = "stops: its storage failed";
  }

  // Clocks of the simulator change their rates by little all the time.
  on_clock(record, at, node) {
    const before = node.clocks.length ? this.rateOf(node, at) : record.holder_ppm;
    const told = this.told.length;
    super.on_clock(record, at, node);
    if (Math.abs(record.holder_ppm - before) < 20000) this.told.length = told;
  }

  on_pause(record, at, node) { super.on_pause({until: record.at, ...record}, at, node); }
  on_suspend(record, at, node) { super.on_suspend({until: record.at, ...record}, at, node); }

  on_disk(record, at, node) { this.tell(at, node, `its disk ${String(record.what).replace("_", " ")}`, 2); }
  on_settings(record, at, node) { this.tell(at, node, `settings: ${record.text || record.what}`, 1); }
  on_members(record, at, node) { this.tell(at, node, `members ${record.what}: ${record.text || ""}`, 1); }

  // Not every program tells when a client asked.
  on_read(record, at, node) {
    if (!this.asked.has(record.number)) this.begin({...record, what: ""}, at, node, "read");
    super.on_read(record, at, node);
  }

  on_write(record, at, node) {
    if (record.what !== "asked" && !this.asked.has(record.number)) this.begin(record, at, node, "write");
    super.on_write(record, at, node);
  }

  on_sent(record, at) {
    if (record.peer) super.on_sent(record, at);
  }

  settle(from, to, record, at, lost) {
    if (record.from !== undefined) this.longestWay = Math.max(this.longestWay, at - record.from / 1e6);
    super.settle(from, to, record, at, lost);
  }

  on_mark(record, at, node) {
    if (record.what === "durable" && node) node.durable.push({at, index: record.index || 0});
    if (record.what === "unseen" && node) {
      this.role(node, at, "down", 0);
      this.close(node.leases, at);
    }
    if (node && record.text) return this.tell(at, node, record.text, 3);
    if (record.text) this.tell(at, null, record.text, 3);
  }
};

/** Reads a whole trace. Throws an Error that names the line. */
LeaseLab.readRecording = function (text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const limits = LeaseLab.recordingLimits;
  if (lines.length > limits.records) {
    throw new Error(`it has ${lines.length} records, and a page shows at most ${limits.records}`);
  }
  const records = lines.map((line, place) => {
    let record = null;
    try {
      record = line.length > limits.line ? null : JSON.parse(line);
    } catch {
      record = null;
    }
    const wrong = place === 0 && record && record.kind === "cluster_trace" ?
      "this is a file of leasehold trace: `leasehold lab --trace` makes a page of it" :
      LeaseLab.wrongRecord(record, place === 0);
    if (wrong) throw new Error(`line ${place + 1}: ${wrong}`);
    return record;
  });
  if (!records.length) throw new Error("it is empty");
  return records;
};

/** What is wrong with a record; "" if nothing is. */
LeaseLab.wrongRecord = function (record, first) {
  if (!record || typeof record !== "object" || Array.isArray(record)) return "this is no record of a trace";
  if ((record.kind === "run") !== first) return "a trace begins with one record of kind `run`";
  if (first && record.v !== 1) return `this is a trace of version ${Number(record.v)}; the page reads version 1`;
  for (const name of ["at", "node", "peer", "group", "term", "round", "index", "from", "until", "number",
    "holder_ppm", "promise_ppm"]) {
    if (record[name] !== undefined && !Number.isSafeInteger(record[name])) return `\`${name}\` is no number`;
  }
  for (const name of ["kind", "what", "why", "text"]) {
    if (record[name] !== undefined && typeof record[name] !== "string") return `\`${name}\` is no text`;
  }
  return record.at >= 0 && record.kind ? "" : "a record has an instant and a kind";
};

/** The place of the lane of each replica, by "node.group". */
LeaseLab.lanesOf = function (records) {
  const lanes = new Map();
  const add = (node, group) => {
    if (node > 0) lanes.set(`${node}.${group}`, {node, group});
  };
  for (let node = 1; node <= Math.min(records[0].number || 0, 99); ++node) add(node, 1);
  for (const record of records) {
    add(record.node, record.group || 1);
    add(record.peer, record.group || 1);
    if (lanes.size > LeaseLab.recordingLimits.lanes) {
      throw new Error(`it has more than ${LeaseLab.recordingLimits.lanes} replicas`);
    }
  }
  if (!lanes.size) throw new Error("it tells of no node");
  const list = [...lanes.values()].sort((a, b) => a.node - b.node || a.group - b.group);
  for (const lane of list) lane.name = lane.node + (lane.group > 1 ? String.fromCharCode(96 + lane.group) : "");
  return list;
};

/** In the place of a Session, with the same calls. */
LeaseLab.RecordedSession = class {
  constructor(text) {
    const records = LeaseLab.readRecording(text);
    const lanes = LeaseLab.lanesOf(records);
    const places = new Map(lanes.map((lane, place) => [`${lane.node}.${lane.group}`, place + 1]));
    this.title = records[0].text || "a trace";
    this.ofCluster = records[0].what === "cluster";
    this.recorded = true;
    this.history = new LeaseLab.RecordedHistory(lanes);
    this.settings = {nodes: lanes.length, delay: 15};
    this.steps = [];
    for (const record of records) {
      const group = record.group || 1;
      const own = lanes.filter((lane) => lane.node === record.node &&
        (lane.group === group || LeaseLab.ofProcess.has(record.kind)));
      const peer = record.peer ? places.get(`${record.peer}.${group}`) : undefined;
      if (!own.length) this.history.feed({...record, node: 0, peer});
      for (const lane of own) this.history.feed({...record, node: places.get(`${lane.node}.${lane.group}`), peer});
    }
    this.longest = Math.max(1, records[records.length - 1].at / 1e6);
    this.reach = this.longest;
    this.usable = 0;
    const first = records.find((record) => record.kind === "sent") || records[0];
    this.begin = Math.min(this.longest, Math.max(1500, first.at / 1e6 + 600));
  }

  /** What stands before everything else: what is missing, and how well the clocks are known. */
  opening() {
    return this.history.told.filter((one) => one.at === 0 && !one.node).map((one) => one.text).join(". ");
  }

  link() { return ""; }
  linkOf() { return ""; }
  hash() { return ""; }
  runTo() { return true; }
  act() { return LeaseLab.readOnly; }
  undo() { return ""; }
  change() { return LeaseLab.readOnly; }
  next(t) {
    const place = LeaseLab.lastAt(this.interesting(), t + 0.0005) + 1;
    return place < this.interesting().length ? this.interesting()[place].at : this.longest;
  }
};
for (const name of ["before", "interesting"]) {
  LeaseLab.RecordedSession.prototype[name] = LeaseLab.Session.prototype[name];
}

Object.assign(LeaseLab.App.prototype, {
  /** Shows a trace in place of the visit. Returns what is wrong with it; "" if nothing is. */
  showRecording(text) {
    let session;
    try {
      session = new LeaseLab.RecordedSession(text);
    } catch (error) {
      return error.message;
    }
    this.playing = false;
    this.find("play").textContent = "▶ Play";
    if (!this.session.recorded) this.visited = this.session;
    this.session = session;
    this.find("tour-card").hidden = true;
    this.find("readonly-title").textContent = session.title;
    this.find("readonly-cluster").hidden = !session.ofCluster;
    this.find("readonly-clocks").textContent = session.ofCluster ? session.opening() : "";
    this.showPanels(true);
    this.hideNotes();
    const own = /(?:^#|&)t=(\d+(?:\.\d+)?)$/.exec(location.hash);
    this.now = Math.min(own ? Number(own[1]) : session.begin, session.longest);
    this.changedNodes();
    this.show();
    return "";
  },

  showPanels(recorded) {
    this.find("readonly").hidden = !recorded;
    for (const id of ["hands-panel", "settings-panel", "gap-panel", "tour", "undo", "link", "compare", "save-scenario"]) {
      this.find(id).hidden = recorded;
    }
  },

  endRecording() {
    if (!this.session.recorded) return;
    this.session = this.visited;
    this.showPanels(false);
  },

  leaveRecording() {
    this.saved = `#${LeaseLab.defaultLink}&t=1500`;
    location.hash = this.saved;
    this.openAddress();
  },

  /** The recording that `leasehold lab --trace` has put into this page; "": there is none, any more. */
  embedded() {
    const element = this.find("recording");
    const text = element.textContent.trim();
    element.textContent = "";
    return text;
  },
});
