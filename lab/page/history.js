// What happened in a visit, as the page needs it: windows, roles, clocks and messages of each node,
// and what of them was known at an instant. Times are milliseconds of true time.
"use strict";

var LeaseLab = LeaseLab || {};

/** The place of the last item whose time is not after t; -1: there is none. */
LeaseLab.lastAt = function (items, t) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].at <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

/** What a node is to the group. */
LeaseLab.seats = {
  voter: "voter", learner: "learner", leaving: "leaving voter", removed: "removed", no_member: "not a member",
};

LeaseLab.History = class {
  /** Lanes, and how many of the nodes form the group at first. */
  constructor(count, founders = count) {
    this.founders = founders;
    this.nodes = [];
    for (let id = 1; id <= count; ++id) {
      this.nodes.push({
        id, roles: [], promises: [], leases: [], stops: [], clocks: [], durable: [], commits: [],
        operations: [], members: [],
      });
    }
    this.messages = [];
    this.cuts = [];
    this.told = [];        // what people read, in order
    this.findings = [];
    this.groups = [];      // who belongs to the group by the log of its newest leader, if that has changed
    this.waiting = new Map();  // messages under way, by link
    this.asked = new Map();    // operations without an answer, by number
  }

  /** One record of docs/formats/trace.md. */
  feed(record) {
    const at = record.at / 1e6;
    const node = record.node ? this.nodes[record.node - 1] : null;
    const take = this["on_" + record.kind];
    if (take && (node || record.kind === "mark")) take.call(this, record, at, node);
  }

  /** Of a lane: in a recording they are not numbered from 1. */
  nameOf(id) { return this.names ? this.names[id - 1] : id; }

  tell(at, node, text, weight) {
    this.told.push({at, node: node ? node.id : 0, text, weight: weight || 1});
  }

  // ---- Processes ----

  role(node, at, role, term) {
    const last = node.roles[node.roles.length - 1];
    const known = term || (last ? last.term : 0);
    if (last && last.role === role && last.term === known) return;
    if (last) last.end = at;
    node.roles.push({at, end: Infinity, role, term: known});
  }

  on_start(record, at, node) {
    this.role(node, at, "follower", 0);
    if (record.number > 1) this.tell(at, node, "starts again", 2);
  }

  on_crash(record, at, node) {
    this.role(node, at, "down", 0);
    this.close(node.leases, at);
    this.endStop(node, at);
    this.tell(at, node, "dies", 3);
  }

  on_notice(record, at, node) {
    this.tell(at, node, `learns that a process of node ${this.nameOf(record.peer)} has ended`, 2);
  }

  on_role(record, at, node) {
    this.role(node, at, record.what, record.term);
    if (record.what === "leader") this.tell(at, node, `leads term ${record.term}`, 3);
    else if (record.what === "follower") {
      this.tell(at, node, `follows again (${record.why.replace(/_/g, " ")})`, 2);
    } else this.tell(at, node, `is a ${record.what.replace("_", "-")}`, 1);
  }

  on_leader(record, at, node) {
    this.role(node, at, node.roles[node.roles.length - 1].role, record.term);
  }

  on_vote(record, at, node) {
    const what = record.what === "vote" ? "votes for" : "would vote for";
    this.tell(at, node, `${what} node ${this.nameOf(record.peer)}`, 1);
  }

  on_refusal(record, at, node) {
    this.tell(at, node, `refuses node ${this.nameOf(record.peer)} its vote: ${record.why.replace(/_/g, " ")}`, 2);
  }

  on_pause(record, at, node) { this.stop(node, at, "paused", record); }
  on_suspend(record, at, node) { this.stop(node, at, "asleep", record); }

  stop(node, at, what, record) {
    node.stops.push({at, end: Infinity, what, until: record.until / 1e6});
    this.tell(at, node, what === "paused" ? "stands still" : "falls asleep", 2);
  }

  endStop(node, at) {
    for (const stop of node.stops) if (stop.end === Infinity) stop.end = at;
  }

  on_resume(record, at, node) {
    this.endStop(node, at);
    this.tell(at, node, "goes on", 2);
  }

  on_transfer(record, at, node) {
    this.tell(at, node, `transfer to node ${this.nameOf(record.peer)}: ${record.what} ${record.why || ""}`, 2);
  }

  // ---- Members ----

  on_members(record, at, node) {
    if (!record.index) return;
    const known = record.what === "committed";
    node.members.push({at, index: record.index, committed: known, text: record.text || ""});
    this.tell(at, node, known ? `knows that the members of entry ${record.index} are committed` :
      `goes by the members of entry ${record.index}: ${record.text}`, known ? 1 : 2);
  }

  /** "voters 1,2,3 outgoing 1,2 learners 4". */
  onGroup(record, at) {
    const list = (name) => {
      const found = new RegExp(`${name} ([0-9,]+)`).exec(record.text || "");
      return found ? found[1].split(",").map(Number) : [];
    };
    const group = {
      at, index: record.index, voters: list("voters"), outgoing: list("outgoing"), learners: list("learners"),
    };
    this.groups.push(group);
    const joint = group.outgoing.length ? `; joint with ${group.outgoing.join(" ")}: both halves count` : "";
    const learn = group.learners.length ? `; learners: ${group.learners.join(" ")}` : "";
    this.tell(at, null, `The group by entry ${group.index}: ${group.voters.join(" ")} vote${joint}${learn}`, 3);
  }

  /** Whether anybody joins or leaves here. */
  changesMembers() { return this.groups.length > 0 || this.founders < this.nodes.length; }

  groupAt(t) { return this.groups[LeaseLab.lastAt(this.groups, t)] || null; }

  /** "voter", "learner", "leaving" (it votes until the joint state is left), "removed", "no_member". */
  seatIn(group, id) {
    if (!group) return id <= this.founders ? "voter" : "no_member";
    if (group.voters.includes(id)) return "voter";
    if (group.outgoing.includes(id)) return "leaving";
    if (group.learners.includes(id)) return "learner";
    const been = id <= this.founders || this.groups.some((one) => one.at <= group.at &&
      (one.voters.includes(id) || one.learners.includes(id)));
    return been ? "removed" : "no_member";
  }

  seatAt(id, t) { return this.seatIn(this.groupAt(t), id); }

  // ---- Clocks ----

  on_clock(record, at, node) {
    const first = node.clocks.length === 0;
    const local = first ? 0 : this.localOf(node, at);
    const rate = record.holder_ppm;
    node.clocks.push({at, local, rate});
    if (first) return;
    const leaps = Math.abs(rate) > 900000;
    const way = rate > 0 ? "fast" : "slow";
    const text = rate === 0 ? "its clock is right" : `its clock is ${Math.abs(rate) / 1e4} % ${way}`;
    this.tell(at, node, leaps ? "its clock leaps" : text, 2);
  }

  /** What the node's own clock has counted since the start of the visit. */
  localOf(node, t) {
    const line = node.clocks[LeaseLab.lastAt(node.clocks, t)];
    return line ? line.local + (t - line.at) * (1 + line.rate / 1e6) : t;
  }

  rateOf(node, t) {
    const line = node.clocks[LeaseLab.lastAt(node.clocks, t)];
    return line ? line.rate : 0;
  }

  // ---- Windows ----

  open(windows) {
    const last = windows[windows.length - 1];
    return last && last.closed === Infinity ? last : null;
  }

  close(windows, at) {
    const last = this.open(windows);
    if (last) last.closed = at;
  }

  on_promise(record, at, node) {
    const last = this.open(node.promises);
    const same = last && last.peer === record.peer && last.term === record.term;
    const edge = {at, until: record.until / 1e6};
    if (same) return last.edges.push(edge);
    if (last) last.closed = at;
    node.promises.push({
      at, peer: record.peer, term: record.term, closed: Infinity, edges: [edge],
    });
    this.tell(at, node, `promises node ${this.nameOf(record.peer)} to elect nobody else`, 2);
  }

  on_unpromised(record, at, node) {
    this.close(node.promises, at);
    this.tell(at, node, "its promise ends early", 1);
  }

  on_lease(record, at, node) {
    const edge = {
      at, until: record.until / 1e6, peer: record.peer || 0, round: record.round || 0,
      began: record.from === undefined ? at : record.from / 1e6, arrow: this.newestReply,
      beat: record.what === "beat",
    };
    if (edge.arrow && (edge.arrow.end !== at || edge.arrow.to !== node.id)) edge.arrow = null;
    const last = this.open(node.leases);
    if (last && last.term === record.term && record.why !== "gained") return last.edges.push(edge);
    if (last) last.closed = at;
    node.leases.push({at, term: record.term, closed: Infinity, edges: [edge]});
    this.tell(at, node, `has a lease of term ${record.term}`, 3);
  }

  on_lease_lost(record, at, node) {
    this.close(node.leases, at);
    this.tell(at, node, "gives up its lease", 2);
  }

  // ---- Messages ----

  on_sent(record, at) {
    const message = {
      at, end: Infinity, from: record.node, to: record.peer, what: record.what,
      why: record.why || "", round: record.round || 0, text: record.text || "", lost: false,
      number: record.number || 0,
    };
    this.messages.push(message);
    const link = record.node + ">" + record.peer;
    if (!this.waiting.has(link)) this.waiting.set(link, []);
    this.waiting.get(link).push(message);
  }

  settle(from, to, record, at, lost) {
    const waiting = this.waiting.get(from + ">" + to) || [];
    const sent = record.from === undefined ? -1 : record.from / 1e6;
    const place = waiting.findIndex((message) => message.what === record.what &&
      message.text === (record.text || "") && (sent < 0 || message.at === sent));
    if (place < 0) return;
    const message = waiting.splice(place, 1)[0];
    message.end = at;
    message.lost = lost;
    if (!lost && message.what === "append_reply") this.newestReply = message;
  }

  on_delivered(record, at) { this.settle(record.peer, record.node, record, at, false); }
  on_lost(record, at) { this.settle(record.node, record.peer, record, at, true); }

  on_cut(record, at) {
    this.cuts.push({at, end: Infinity, from: record.node, to: record.peer});
    this.tell(at, this.nodes[record.node - 1], `nothing of it reaches node ${this.nameOf(record.peer)}`, 1);
  }

  on_join(record, at) {
    for (const cut of this.cuts) {
      const same = cut.from === record.node && cut.to === record.peer;
      if (same && cut.end === Infinity) cut.end = at;
    }
    this.tell(at, this.nodes[record.node - 1], `reaches node ${this.nameOf(record.peer)} again`, 1);
  }

  isCut(from, to, t) {
    return this.cuts.some((cut) => cut.from === from && cut.to === to && cut.at <= t && t < cut.end);
  }

  // ---- Clients, and what is durable ----

  begin(record, at, node, kind) {
    const operation = {
      at, end: Infinity, kind, mode: record.what, basis: "", failure: "", text: record.text || "",
      number: record.number,
    };
    node.operations.push(operation);
    this.asked.set(record.number, operation);
  }

  finish(record, at, basis, failure) {
    const operation = this.asked.get(record.number);
    if (!operation) return null;
    this.asked.delete(record.number);
    operation.end = at;
    operation.basis = basis;
    operation.failure = failure;
    operation.text = record.text || operation.text;
    return operation;
  }

  on_asked(record, at, node) { this.begin(record, at, node, "read"); }

  on_read(record, at, node) {
    this.finish(record, at, record.what || "", record.why || "");
    if (record.why === "stale") this.tell(at, node, `a STALE read: ${record.text}`, 3);
  }

  on_write(record, at, node) {
    if (record.what === "asked") return this.begin(record, at, node, "write");
    const failed = record.what === "done" ? "" : record.what;
    this.finish(record, at, "write", failed);
    if (failed) this.tell(at, node, `a write is ${failed}: ${record.text}`, 2);
  }

  on_commit(record, at, node) { node.commits.push({at, index: record.index}); }

  on_mark(record, at, node) {
    if (record.what === "durable") node.durable.push({at, index: record.index});
    if (record.what === "group") this.onGroup(record, at);
    if (node && Object.hasOwn(LeaseLab.handled, record.what)) this.onHandled(record, at, node);
    if (["refused", "unknown"].includes(record.what)) this.tell(at, node, `${record.what}: ${record.text}`, 3);
    if (record.what === "unused") this.tell(at, node, `nothing to do for “${record.text}”`, 1);
    if (record.what === "violation") {
      this.findings.push({at, oracle: record.why, text: record.text});
      this.tell(at, null, `FOUND ${record.why.replace(/_/g, " ")}: ${record.text}`, 3);
    }
  }

  // ---- What holds at an instant ----

  roleAt(node, t) {
    return node.roles[LeaseLab.lastAt(node.roles, t)] || {at: 0, end: 0, role: "down", term: 0};
  }

  /** The window that was newest at t, with its edge as it was known then; null if it is over. */
  windowAt(windows, t) {
    const window = windows[LeaseLab.lastAt(windows, t)];
    if (!window || window.closed <= t) return null;
    const edge = window.edges[LeaseLab.lastAt(window.edges, t)];
    return edge && edge.until > t ? {window, edge} : null;
  }

  stopAt(node, t) {
    return node.stops.find((stop) => stop.at <= t && t < stop.end) || null;
  }

  /** The newest of these nodes that leads at t; null if none does. */
  leaderAt(t, nodes = this.nodes) {
    let found = null;
    for (const node of nodes) {
      const role = this.roleAt(node, t);
      if (role.role !== "leader") continue;
      if (!found || role.term > this.roleAt(found, t).term) found = node;
    }
    return found;
  }
};
