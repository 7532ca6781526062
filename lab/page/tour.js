// Fourteen visits, from a lock that nobody can take back to a read that is wrong. Each is a link, an
// instant, and what there is to see. tests/lab/page.py looks whether it can be seen.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.tour = [
  {
    title: "Why not a plain lock?", link: "seed=7&steps=1500.pause.3.1500", t: 2990, span: 2600, node: 3,
    text: "Node 3 led, and stands still since 1500 ms. Had it a plain lock, it would still hold it: it does not " +
      "know that time has passed, and nobody can ask it. A lease (green) ends by itself. The others had " +
      "promised to elect nobody else (teal). When their promises were over, they elected node 1. When node 3 " +
      "wakes up, its own clock says that its lease is over.",
  },
  {
    title: "t0: a candidate asks", link: "seed=7", t: 368, span: 160, node: 3,
    text: "Back to the start. Node 3 has heard from no leader, and asks first whether it would win (a pre-vote), " +
      "then for votes. Nobody holds anything: no lease, no promise.",
  },
  {
    title: "t1 and t2: votes promise nothing", link: "seed=7", t: 405, span: 160, node: 1,
    text: "Both others vote for node 3. No teal begins. A vote says: in this term I elect nobody else. It says nothing of " +
      "the next term, in which the same voter may vote for another node a millisecond later. So votes make a leader, " +
      "and do not let it read alone. A promise (teal, later) says: for a time I elect nobody else, in any term.",
  },
  {
    title: "t3: the leader sends", link: "seed=7", t: 416, span: 160, node: 3,
    text: "Node 3 has the votes of a majority and leads. It begins its first round, and remembers on its own " +
      "clock when it did. It has no lease yet: an earlier leader might still have one.",
  },
  {
    title: "t4: promises come first", link: "seed=7", t: 438, span: 160, node: 2,
    text: "The voters hear from the leader. Each promises to elect nobody else for D = 1000 ms of its own clock, " +
      "from the arrival on. The leader still has no lease: it does not know of these promises.",
  },
  {
    title: "t5: the lease", link: "seed=7", t: 450, span: 160, node: 3,
    text: "An acknowledgement completes the quorum (orange), and the lease begins. It counts from t3, when the round was " +
      "sent: follow the bracket back. Why not from now? The leader cannot see t4, when a promise began. It knows only " +
      "that t4 was after its send. Counted from there, the lease ends before every promise that it rests on, however " +
      "long the messages took. Counted from t5, it would end after them.",
  },
  {
    title: "Every round moves the edge", link: "seed=7", t: 1500, span: 900, node: 3,
    text: "Every R = 100 ms a round begins. Each time, the acknowledgement that completes the quorum moves the edge " +
      "of the lease to U behind the send of its round: U = D·(1−ρ)/(1+ρ) − σ. That is what is left of D if the holder's " +
      "clock is as slow and a voter's as fast as ρ allows, less a margin σ. Press → to go from edge to edge.",
  },
  {
    title: "What a read costs", t: 1580, span: 220, node: 3,
    link: "seed=7&reads=0&writes=0&steps=1500.read.3.lease~1510.read.3.quorum~1520.read.1.lease~1530.read.3.log",
    text: "Four reads. Inside its lease the leader answers at once, without a message (circle). By a quorum it " +
      "needs a round (square). A follower asks the leader (triangle). Through the log, an entry has to be " +
      "durable at a majority (diamond).",
  },
  {
    title: "The price: a leader dies", link: "seed=7&steps=1500.kill.3", t: 3080, span: 2600, node: 3,
    text: "Node 3 dies at 1500 ms. The others keep their promises, so nobody is elected before they end, and " +
      "nobody answers. That gap is what D costs. Make D smaller, and watch the gap shrink and the second " +
      "inequality come closer.",
  },
  {
    title: "A death that is known", link: "seed=7&known=1&steps=1500.kill.3", t: 2200, span: 2600, node: 1,
    text: "The same death. But here a small process beside each node, its deputy, tells the others that the process " +
      "has ended: a process that is dead cannot use its lease. So the promises to it end at once, and an election " +
      "need not wait for D. Press Compare to see both below each other. No deputy outlives its machine: when the " +
      "power fails, only waiting is safe.",
  },
  {
    title: "Clocks that drift, within ρ", t: 2325, span: 360, node: 3,
    link: "seed=7&steps=1500.drift.3.-100000~1500.drift.1.100000~1500.drift.2.100000~1500.alone.3",
    text: "The worst that ρ = 10 % allows: the leader is cut off, its clock is slow by 10 %, and those of its voters " +
      "are fast by 10 % (orange ticks). Its lease is over, and both promises still hold, for a few " +
      "milliseconds. This is what U was made for.",
  },
  {
    title: "A planned transfer costs no lease", link: "seed=7&steps=1500.transfer.3.1", t: 1580, span: 220, node: 1,
    text: "Node 3 gives up its lease first, and then lets node 1 pass the promises, with a token that serves once. " +
      "In three round trips another node leads and has a lease.",
  },
  {
    title: "Without the rule: an old value", t: 2700, span: 900, node: 3,
    link: "seed=7&steps=1500.drift.3.-400000~1500.drift.1.400000~1500.drift.2.400000~1500.alone.3~2580.write.1",
    text: "Now the clocks are wrong by 40 %, and ρ says 10. The promises end while the old lease still looks valid " +
      "to its holder. Node 1 is elected, and commits a write; then node 3 answers a read by its lease, with the " +
      "old value (the star). The judges name each rule that broke. Take the drift back, and it cannot happen.",
  },
  {
    title: "An inequality that is broken", t: 3640, span: 900, node: 1,
    link: "seed=7&unchecked=1&lease=2000&election=100&margin=-350&steps=1500.drift.1.-100000~1500.drift.2.100000~" +
      "1500.drift.3.100000~1500.alone.1~3500.write.2",
    text: "Here the clocks keep within ρ, as wrong as it allows. But σ is −350 ms: the leader counts on 350 ms more of " +
      "each promise than is sure. A core that checks its numbers refuses that; this one was compiled without the " +
      "check. Node 2 is elected and commits a write, and node 1 still reads by its lease: an old value (the star). " +
      "Press Compare to see the same steps where σ is zero.",
  },
];

Object.assign(LeaseLab.App.prototype, {
  listenToTour() {
    const press = (id, action) => this.find(id).addEventListener("click", action);
    press("tour", () => this.visitTour(0));
    press("tour-back", () => this.visitTour(this.tourStop - 1));
    press("tour-next", () => this.visitTour(this.tourStop + 1));
    press("tour-end", () => this.endTour());
  },

  visitTour(number) {
    const stop = LeaseLab.tour[number];
    if (!stop) return this.endTour();
    this.stop();
    if (this.awaitsCore(stop.link, () => this.visitTour(number))) return;
    if (this.piece) this.enterWhole();
    this.tourStop = number;
    const wrong = this.session.open(stop.link);
    if (wrong) return this.say(wrong, true);
    this.selected = stop.node;
    this.span = stop.span * (window.innerWidth < 640 ? 0.6 : 1);
    this.panel.show(this.session.settings);
    this.panel.clearNote();
    this.changedNodes();
    this.moveTo(stop.t, true);
    this.saveAddress();
    this.find("tour-card").hidden = false;
    this.find("tour-title").textContent = `${number + 1} of ${LeaseLab.tour.length}: ${stop.title}`;
    this.find("tour-text").textContent = stop.text;
    this.find("tour-back").disabled = number === 0;
    this.find("tour-next").textContent = number + 1 === LeaseLab.tour.length ? "To the lab" : "Next";
    this.say(`Tour, ${number + 1} of ${LeaseLab.tour.length}: ${stop.title}. ${stop.text}`);
  },

  endTour() {
    this.find("tour-card").hidden = true;
    this.find("tour").focus();
  },
});
