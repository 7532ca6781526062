// Two groups on the same nodes: a lane for each replica, named as in scenarios (1 and 1b), and one set of beats between the
// processes, on which the promises and leases of both rest.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.groupCount = (settings) => settings.groups || 1;
LeaseLab.laneOf = (settings, node, group) => (node - 1) * LeaseLab.groupCount(settings) + group;

/** The node of a lane, and "1b" for the words of a step. */
LeaseLab.placeOf = function (settings, lane) {
  const groups = LeaseLab.groupCount(settings);
  const node = Math.ceil(lane / groups);
  return {node, replica: node + ["", "b"][(lane - 1) % groups]};
};

/** The lane that a word of a step names. */
LeaseLab.laneOfWord = (history, word) => history.names ? history.names.indexOf(word) + 1 : Number(word);

LeaseLab.namesOf = function (settings) {
  const lanes = LeaseLab.laneCount(settings);
  return Array.from({length: lanes}, (_, place) => LeaseLab.placeOf(settings, place + 1).replica);
};

/** One record: what happens to a process happens to each of its replicas, and is told once. */
LeaseLab.feedLanes = function (history, settings, record) {
  const groups = LeaseLab.groupCount(settings);
  if (groups === 1 || !record.node) return history.feed(record);
  const own = record.group || 1;
  const peer = record.peer ? LeaseLab.laneOf(settings, record.peer, own) : undefined;
  history.feed({...record, node: LeaseLab.laneOf(settings, record.node, own), peer});
  if (!LeaseLab.ofProcess.has(record.kind)) return;
  const told = history.told.length;
  for (let group = 1; group <= groups; ++group) {
    if (group !== own) history.feed({...record, node: LeaseLab.laneOf(settings, record.node, group), peer});
  }
  history.told.length = told;
};

Object.assign(LeaseLab.App.prototype, {
  /** A number key chooses a node; again, its replica of the other group. */
  chooseNode(node) {
    const settings = this.session.recorded ? {} : this.session.settings;
    const first = LeaseLab.laneOf(settings, node, 1);
    this.select(LeaseLab.groupCount(settings) > 1 && this.selected === first ? first + 1 : first);
  },

  /** "Node 1 leads." Of each group. */
  whoLeads() {
    const history = this.session.history;
    const groups = this.session.recorded ? 1 : LeaseLab.groupCount(this.session.settings);
    const texts = [];
    for (let group = 0; group < groups; ++group) {
      const leader = history.leaderAt(this.now, history.nodes.filter((_, place) => place % groups === group));
      const where = groups > 1 ? ` in the ${["first", "second"][group]} group` : "";
      texts.push(leader ? `Node ${history.nameOf(leader.id)} leads${where}.` : `Nobody leads${where}.`);
    }
    return texts.join(" ");
  },

  /** What was sent in the last second, and what the leases rest on. */
  groupsText() {
    const history = this.session.history;
    const sent = {first: 0, second: 0, processes: 0};
    for (let i = LeaseLab.lastAt(history.messages, this.now); i >= 0; --i) {
      const message = history.messages[i];
      if (message.at <= this.now - 1000) break;
      sent[/^beat/.test(message.what) ? "processes" : message.from % 2 ? "first" : "second"] += 1;
    }
    const leases = history.nodes.map((node) => [node, history.windowAt(node.leases, this.now)])
      .filter((pair) => pair[1]).map(([node, {edge}]) =>
        `the lease of node ${history.nameOf(node.id)} by ${edge.beat ? "beat" : "round"} ${edge.round}`);
    const rest = leases.length ? `Now ${leases.join(", and ")}.` : "Nobody has a lease.";
    return `Messages in the last second: ${sent.first} of the first group, ${sent.second} of the second one, ` +
      `${sent.processes} between the processes (beats and their answers). ${rest}`;
  },

  describeGroups() {
    const shown = !this.session.recorded && LeaseLab.groupCount(this.session.settings) > 1;
    const line = this.find("groups");
    line.hidden = !shown;
    const text = shown ? this.groupsText() : "";
    if (line.textContent !== text) line.textContent = text;
  },
});
