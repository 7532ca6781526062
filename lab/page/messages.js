// One message under way, under the visitor's hands: it is lost, delayed, or arrives twice.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.keyHelp.push(["M", "the next message under way"], ["D Y B", "drop it, delay it, let it arrive twice (both)"]);

/** What becomes of it, if it is lost or late. */
LeaseLab.messageMeans = {
  heartbeat: "A round of the leader. Without it, this voter renews no promise in this round. Others may complete the " +
    "quorum; else the next round moves the lease.",
  entries: "It carries entries, and is a round, too. They are sent again; until a majority holds them, the client waits.",
  append_reply: "The acknowledgement of a round. The edge of the lease counts from the send of that round: so one that is " +
    "late never makes a lease longer, and a second one changes nothing.",
  pre_vote: "It asks whether its sender would win, and binds nobody. Without an answer, it asks again later.",
  pre_vote_reply: "It only says who would vote. Without a majority of such answers no term begins.",
  vote: "It asks for a vote of its term. Without a majority, another election follows.",
  vote_reply: "A vote. It counts once, in its own term: late or twice, it elects nobody.",
  read_index: "A node asks the leader from which entry on a read is new enough. It asks again.",
  read_index_reply: "The answer of the leader to a read. Late, the reader waits longer.",
  snapshot: "A part of a snapshot. It is sent again.", snapshot_reply: "It acknowledges a part of a snapshot.",
  timeout_now: "The token of a transfer: with it, its target may pass the promises. It serves once. Lost, the leader waits " +
    "until the token is of no use any more, and leads on.",
};

LeaseLab.handled = {
  dropped: (what, to) => `its ${what} to node ${to} is lost, by your hand`,
  delayed: (what, to, until) => `its ${what} to node ${to} arrives only at ${until} ms, by your hand`,
  twice: (what, to, until) => `its ${what} to node ${to} arrives twice: the copy at ${until} ms, by your hand`,
};

LeaseLab.isAboutMessage = (step) => ["drop", "delay", "twice"].includes(step.split(".")[1]);

LeaseLab.flightWords = (history, message, now) => `${message.what.replace(/_/g, " ")} ` +
  `${history.nameOf(message.from)} → ${history.nameOf(message.to)}, sent ${(now - message.at).toFixed(1)} ms ago: ${message.text}`;

Object.assign(LeaseLab.History.prototype, {
  /** Record `mark` of one of LeaseLab.handled. */
  onHandled(record, at, node) {
    const what = (record.text || "").split(":")[0].replace(/_/g, " ");
    const until = (record.until || 0) / 1e6;
    this.tell(at, node, LeaseLab.handled[record.what](what, this.nameOf(record.peer), until.toFixed(1)), 2);
    const waiting = this.waiting.get(record.node + ">" + record.peer) || [];
    const message = waiting.find((one) => one.number === record.number);
    if (!message || record.what === "dropped") return;
    this.longestWay = Math.max(this.longestWay || 0, until - message.at);
    if (record.what !== "twice") return;
    // It leaves now: so the messages stay in the order of their times.
    const copy = {...message, at, number: 0, copy: true};
    this.messages.push(copy);
    waiting.push(copy);
  },

  /** What a step at t can name: messages that are under way then, and for some time more. */
  flightsAt(t) {
    if (this.names) return [];  // two groups
    const step = Math.ceil(t);
    const first = LeaseLab.lastAt(this.messages, t - Math.max(1500, this.longestWay || 0)) + 1;
    const found = [];
    for (let i = first; i < this.messages.length && this.messages[i].at <= t; ++i) {
      if (this.messages[i].number && this.messages[i].end > step) found.push(this.messages[i]);
    }
    return found;
  },
});

Object.assign(LeaseLab.Painter.prototype, {
  /** Under the line of the one that was chosen. */
  halo(x0, y0, x1, y1) {
    const pen = this.pen;
    pen.save();
    pen.strokeStyle = this.colours.tie;
    pen.globalAlpha = 0.4;
    pen.lineWidth = 8;
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.restore();
  },
});

Object.assign(LeaseLab.App.prototype, {
  listenToMessages() {
    this.chosen = null;
    this.find("flight-next").addEventListener("click", () => this.nextMessage());
    for (const button of document.querySelectorAll("[data-message]")) {
      button.addEventListener("click", () => this.actOnMessage(button.dataset.message));
    }
  },

  /** The chosen message, if a step can name it now. */
  flight() {
    return this.chosen && this.session.history.flightsAt(this.now).find((one) =>
      one.from === this.chosen.from && one.number === this.chosen.number) || null;
  },

  chooseMessage(message) {
    this.stop();
    this.chosen = {from: message.from, number: message.number};
    const words = LeaseLab.flightWords(this.session.history, message, this.now);
    this.say(`Chosen: ${words}. ${this.meaningOf(message)}`);
    this.find("words").textContent = words;
    this.show();
  },

  meaningOf(message) {
    return LeaseLab.messageMeans[message.why] || LeaseLab.messageMeans[message.what] || "";
  },

  /** True: there was one under this place of the lanes. */
  chooseMessageAt(x, y, reach) {
    if (this.session.recorded) return false;
    const message = this.painter.messageNear(x, y, reach, this.session.history.flightsAt(this.now));
    if (message) this.chooseMessage(message);
    return Boolean(message);
  },

  nextMessage() {
    const flights = this.session.history.flightsAt(this.now);
    if (!flights.length) {
      return this.say("No message is under way now. Step on, or play slowly, until an arrow is under way.", true);
    }
    this.chooseMessage(flights[(flights.indexOf(this.flight()) + 1) % flights.length]);
  },

  actOnMessage(verb) {
    const message = this.flight();
    if (!message) return this.say("Choose a message under way first: a tap on its arrow, or M.", true);
    const length = verb === "drop" ? "" : `.${this.find("flight-by").value}`;
    this.selected = message.from;
    this.act(`${verb}.${message.from}.${message.number}${length}`);
  },

  describeMessages() {
    if (this.session.recorded) return;
    const history = this.session.history;
    const flights = history.flightsAt(this.now).slice(0, 40);
    const chosen = this.flight();
    const list = this.find("flights");
    const names = flights.map((one) => `${one.from}.${one.number}`).join();
    if (this.flightsShown !== names || list.children.length !== Math.max(1, flights.length)) {
      this.flightsShown = names;
      const focused = list.contains(document.activeElement) && document.activeElement.dataset.flight;
      list.replaceChildren(...flights.map((one) => {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.flight = `${one.from}.${one.number}`;
        button.addEventListener("click", () => this.chooseMessage(one));
        return button;
      }));
      if (!flights.length) list.textContent = "None now. Step on, or play slowly.";
      const again = focused && list.querySelector(`[data-flight="${focused}"]`);
      if (again) again.focus();
    }
    flights.forEach((one, place) => {
      const button = list.children[place];
      const words = LeaseLab.flightWords(history, one, this.now);
      if (button.textContent !== words) button.textContent = words;
      button.setAttribute("aria-pressed", String(one === chosen));
    });
    const means = chosen ? this.meaningOf(chosen) : history.names ? "Messages are handled in visits of one group." :
      "Choose one: a tap on its arrow, or M. Raft and its lease bear all of it: messages may be lost, late and doubled.";
    if (this.find("flight-means").textContent !== means) this.find("flight-means").textContent = means;
    for (const button of document.querySelectorAll("[data-message]")) button.disabled = !chosen;
  },
});
