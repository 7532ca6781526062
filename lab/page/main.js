// Puts the page together: time, keyboard, address, and what is said to people who do not see the lanes.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.defaultLink = "seed=7&nodes=3";
LeaseLab.keyHelp = [["space", "play or stop"], ["← →", "one event back or on"],
  ["shift ← →", "100 ms back or on"], ["+ −", "closer, wider"], ["1 … 9", "choose a node; again, its other group"],
  ["K R P", "kill, restart, pause it"], ["C J", "cut it off, join its links"], ["S", "slow disk"],
  ["W L Q", "write, read, read by quorum"], ["T", "transfer the leadership"],
  ["A V X", "add it to the group, let it vote, remove it"], ["U", "undo"],
  ["Home", "back to the start"]];

LeaseLab.App = class {
  constructor(core) {
    this.session = new LeaseLab.Session(core);
    this.files = {
      fromScenario: core.cwrap("lab_from_scenario", "string", ["string"]),
      playScenario: core.cwrap("lab_play_scenario", "string", ["string"]),
      toScenario: core.cwrap("lab_to_scenario", "string", ["string", "number"]),
    };
    this.find = (id) => document.getElementById(id);
    this.now = 0;
    this.span = window.innerWidth < 640 ? 700 : 1500;
    this.selected = 1;
    this.playing = false;
    this.playUntil = Infinity;
    this.frames = {count: 0, longest: 0, total: 0};
    this.painter = new LeaseLab.Painter(this.find("canvas"));
    this.hands = new LeaseLab.HandsPanel(this.find("hands"), (words) => this.act(words));
    this.panel = new LeaseLab.SettingsPanel(this.find("settings"), (settings) => this.change(settings));
    this.buildLegend();
    this.listen();
    this.buildMuseum(core);
    this.openAddress();
  }

  // ---- The address ----

  openAddress() {
    const text = decodeURIComponent(location.hash.slice(1));
    if (this.awaitsPiece(text)) return;
    if (!this.piece && this.awaitsCore(text, () => this.openAddress())) return;
    const museum = /^(piece=(.*)|challenge=1)$/;
    const name = text.split("&").map((word) => (museum.exec(word) || [])[2]).find((one) => one) || "";
    const words = text.split("&").filter((word) => word && !museum.test(word));
    const own = words.find((word) => /^t=\d+(\.\d+)?$/.test(word));
    const link = words.filter((word) => word !== own).join("&") || LeaseLab.defaultLink;
    let wrong = this.wrongPiece(name) || this.session.open(link);
    if (wrong) this.openDefault();
    this.now = Math.min(own ? Number(own.slice(2)) : wrong || !words.length ? 1500 : 0,
      this.session.longest);
    let whole = this.session.runTo(Math.max(this.now, this.session.lastMessageStep()), 4000);
    if (!wrong && this.session.refusal()) {
      wrong = this.session.refusal();
      this.openDefault();
      this.now = 1500;
      whole = this.session.runTo(this.now, 4000);
    }
    if (!whole) this.now = Math.min(this.now, this.session.reach);
    this.panel.show(this.session.settings);
    this.changedNodes();
    if (!whole) this.say(`This visit is long. It has been played to ${this.now} ms; play on from there.`, true);
    if (wrong) this.say(`This link cannot be replayed: ${wrong}. This is the default visit.`, true);
    this.show();
  }

  saveAddress() {
    const text = `#${this.session.link()}${this.pieceWord()}&t=${Math.ceil(this.now)}`;
    if (location.hash === text) return;
    this.saved = text;
    try {
      history.replaceState(null, "", text);
    } catch {
      location.hash = text;  // a browser that takes no state for pages from a disk
    }
  }

  // ---- Time ----

  moveTo(t, quiet) {
    this.now = Math.max(0, Math.min(t, this.session.longest));
    this.session.runTo(this.now);
    this.show();
    if (!quiet) this.announce();
  }

  toggle() {
    this.playing = !this.playing;
    this.find("play").textContent = this.playing ? "❚❚ Stop" : "▶ Play";
    if (!this.playing) {
      this.playUntil = Infinity;
      this.saveAddress();
      return this.announce();
    }
    this.newest = this.session.history.told.length;
    this.last = performance.now();
    requestAnimationFrame((time) => this.frame(time));
  }

  frame(time) {
    if (!this.playing) return;
    // A page in the background must not leap when it is back.
    const passed = Math.min(100, Math.max(0, time - this.last));
    this.last = time;
    const begin = performance.now();
    this.moveTo(this.now + passed * Number(this.find("speed").value), true);
    const taken = performance.now() - begin;
    this.frames.count += 1;
    this.frames.total += taken;
    this.frames.longest = Math.max(this.frames.longest, taken);
    this.announcePlaying();
    if (this.now >= Math.min(this.session.longest, this.playUntil)) this.toggle();
    requestAnimationFrame((next) => this.frame(next));
  }

  stop() { if (this.playing) this.toggle(); }
  step() { this.stop(); this.moveTo(this.session.next(this.now)); this.saveAddress(); }
  back() { this.stop(); this.moveTo(this.session.before(this.now)); this.saveAddress(); }
  zoom(factor) {
    this.span = Math.max(40, Math.min(20000, this.span * factor));
    this.show();
  }

  // ---- Steps of the visitor ----

  act(words) {
    if (this.session.recorded) return this.say(LeaseLab.readOnly, true);
    const wrong = this.session.act(this.now, words);
    this.now = Math.max(this.now, this.session.reach);
    this.saveAddress();
    if (wrong) this.say(wrong, true);
    this.show();
    if (!wrong) this.announce();
  }

  undo() {
    const step = this.session.undo(this.now);
    this.now = Math.min(this.now, Math.max(this.session.reach, 0));
    this.saveAddress();
    this.say(step ? `Taken back: ${step.split(".").slice(1).join(" ")}` : "There is no step to take back");
    this.show();
  }

  change(settings) {
    const before = this.session.steps.length;
    const wrong = this.session.change(settings, this.now);
    if (wrong) return wrong;
    const gone = before - this.session.steps.length;
    if (gone) this.say(`${gone} of your steps are forgotten: with these numbers other messages are sent, or fewer nodes run.`, true);
    this.changedNodes();
    this.saveAddress();
    this.show();
    return "";
  }

  copyLink() {
    this.saveAddress();
    const done = () => this.say("The link is copied: it replays this visit to this instant.", true);
    const shown = () => this.say("The link stands in the address of this page.", true);
    if (!navigator.clipboard) return shown();
    navigator.clipboard.writeText(location.href).then(done, shown);
  }

  // ---- What is shown ----

  nameOf(id) { return this.session.history.nameOf(id); }

  changedNodes() {
    const count = LeaseLab.laneCount(this.session.settings);
    this.selected = Math.min(this.selected, count);
    const gutter = this.find("gutter");
    gutter.textContent = "";
    for (let id = 1; id <= count; ++id) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "node";
      button.addEventListener("click", () => this.select(id));
      gutter.append(button);
    }
    const lane = count <= 3 ? 136 : count <= 6 ? 104 : count <= 7 ? 88 : 72;
    this.find("canvas").style.setProperty("--height", 24 + lane * count + "px");
    gutter.style.height = 24 + lane * count + "px";
  }

  select(id) {
    if (id > LeaseLab.laneCount(this.session.settings)) return;
    this.selected = id;
    this.show();
    this.announceNode(this.session.history.nodes[id - 1]);
  }

  show() {
    this.describe();
    if (this.playing) return this.paint();
    // What follows at once after another call is drawn once.
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => { this.drawing = false; this.paint(); });
  }

  paint() {
    const view = {from: this.now - 0.58 * this.span, to: this.now + 0.42 * this.span};
    this.paintOther(view);
    this.painter.delay = this.session.settings.delay;
    this.painter.chosen = this.session.recorded ? null : this.flight();
    this.painter.draw(this.session.history, view, this.now, this.selected, this.session.usable,
      this.session.steps);
    this.paintTwin(view);
  }

  describe() {
    const history = this.session.history;
    this.find("clock").textContent = `${this.now.toFixed(1)} ms`;
    const scrub = this.find("scrub");
    scrub.max = this.session.recorded ? this.session.longest : Math.max(5000, Math.ceil(this.session.reach / 1000) * 1000);
    scrub.value = this.now;
    if (!this.session.recorded) {
      this.hands.select(this.selected, this.session.settings);
      this.find("hands-node").textContent = `node ${this.nameOf(this.selected)}`;
      this.hands.show(history, this.now);
    }
    this.find("undo").disabled = this.session.steps.length === 0;
    history.nodes.forEach((node, place) => this.describeNode(node, place));
    this.describeEvents();
    this.describeMessages();
    this.describeUnchecked();
    this.describeGroups();
    this.describeOther();
    const alarm = this.find("alarm");
    const found = history.findings.filter((one) => one.at <= this.now);
    alarm.hidden = found.length === 0;
    const text = found.length ? found.map((one) =>
      `${one.oracle.replace(/_/g, " ")} at ${one.at.toFixed(1)} ms: ${one.text}. `).join("") +
      (this.piece ? "" : this.blame()) : "";
    if (alarm.textContent !== text) alarm.textContent = text;
  }

  factsOf(node) {
    const history = this.session.history;
    const role = history.roleAt(node, this.now);
    const lease = history.windowAt(node.leases, this.now);
    const promise = history.windowAt(node.promises, this.now);
    const ahead = history.localOf(node, this.now) - this.now;
    const stop = history.stopAt(node, this.now);
    return {role, lease, promise, ahead, stop};
  }

  describeNode(node, place) {
    const {role, lease, promise, ahead, stop} = this.factsOf(node);
    const button = this.find("gutter").children[place];
    const narrow = window.innerWidth < 640;
    const left = lease ? `lease ${Math.round(lease.edge.until - this.now)} ms` :
      promise ? `${narrow ? "" : "promised "}to ${this.nameOf(promise.window.peer)}: ` +
        `${Math.round(promise.edge.until - this.now)} ms` :
        {down: "no process", leader: "no lease"}[role.role] || (narrow ? "free" : "bound to nobody");
    const clock = `clock ${ahead >= 0 ? "+" : "−"}${Math.abs(ahead).toFixed(1)} ms`;
    // Who does not vote follows, and no more.
    const seat = this.session.history.seatAt(node.id, this.now);
    const shown = role.role === "follower" && ["learner", "removed", "no_member"].includes(seat) ?
      LeaseLab.seats[seat] : role.role.replace("_", "-");
    const html = `<span><b>${narrow ? "" : "Node "}${this.nameOf(node.id)}</b> ` +
      `<span class="chip ${role.role} ${seat}">${stop ? stop.what : shown}</span> ` +
      `<small class="term">term ${role.term}</small></span><small>${left}</small>` +
      `<small class="${Math.abs(ahead) > 1 ? "wrong" : ""}">${clock}</small>`;
    if (button.innerHTMLKept !== html) button.innerHTML = button.innerHTMLKept = html;
    button.setAttribute("aria-pressed", String(node.id === this.selected));
  }

  describeEvents() {
    const told = this.session.history.told;
    const last = LeaseLab.lastAt(told, this.now);
    const key = `${last} ${told.length && told[Math.max(0, last)].at}`;
    if (this.listed === key && this.listedOf === this.session.history) return;
    this.listed = key;
    this.listedOf = this.session.history;
    const items = [];
    for (let i = last; i >= 0 && items.length < 40; --i) {
      const one = told[i];
      const item = document.createElement("li");
      item.className = `w${one.weight}`;
      const time = document.createElement("time");
      time.textContent = `${one.at.toFixed(1)} ms`;
      const text = document.createElement("span");
      text.textContent = (one.node ? `node ${this.nameOf(one.node)} ` : "") + one.text;
      item.append(time, text);
      items.push(item);
    }
    this.find("events").replaceChildren(...items);
  }

  // ---- What is said ----

  say(text, seen) {
    this.find("news").textContent = text;
    if (seen) this.find("words").textContent = text;
  }

  announce() {
    const told = this.session.history.told;
    const last = told[LeaseLab.lastAt(told, this.now)];
    const news = last ? `${last.node ? `Node ${this.nameOf(last.node)} ` : ""}${last.text}. ` : "";
    this.say(`${this.now.toFixed(0)} milliseconds. ${news}${this.whoLeads()}`);
  }

  announcePlaying() {
    const told = this.session.history.told;
    const place = LeaseLab.lastAt(told, this.now);
    for (let i = this.newest; i <= place; ++i) {
      if (told[i].weight === 3) this.say(`${told[i].node ? `Node ${this.nameOf(told[i].node)} ` : ""}${told[i].text}`);
    }
    this.newest = Math.max(this.newest, place + 1);
  }

  announceNode(node) {
    const {role, lease, promise, ahead} = this.factsOf(node);
    const held = lease ? `its lease lasts ${Math.round(lease.edge.until - this.now)} milliseconds` :
      promise ? `promised to node ${this.nameOf(promise.window.peer)}` : "bound to nobody";
    const history = this.session.history;
    const seat = history.changesMembers() ? `${LeaseLab.seats[history.seatAt(node.id, this.now)]}, ` : "";
    this.say(`Node ${this.nameOf(node.id)}: ${seat}${role.role.replace("_", "-")}, term ${role.term}, ${held}, ` +
      `its clock is ${ahead.toFixed(1)} milliseconds off.`);
  }
};
