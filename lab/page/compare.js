// The same visit twice: where the end of a process is known to the others, and where it is not.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.keptNames = ["The numbers as you broke them", "The same steps, with the inequalities kept"];
LeaseLab.knownNames = ["The end of a process is not known to the others", "The end of a process is known to the others"];

/** The longest time without an answer to a read, up to `t`: in ms. */
LeaseLab.silence = function (history, t) {
  const ends = history.nodes.flatMap((node) => node.operations)
    .filter((one) => one.kind === "read" && !one.failure && one.end <= t).map((one) => one.end).sort((a, b) => a - b);
  if (!ends.length) return 0;
  ends.push(t);
  return Math.max(...ends.slice(1).map((end, place) => end - ends[place]));
};

Object.assign(LeaseLab.App.prototype, {
  listenToCompare() {
    this.find("compare").addEventListener("click", () => {
      this.comparing = !this.comparing;
      this.saveAddress();
      this.startOther();
      this.show();
    });
    this.find("known").addEventListener("change", (event) => {
      const wrong = this.change({...this.session.settings, known: event.target.checked ? 1 : 0});
      if (wrong) this.say(wrong, true);
    });
  },

  /** The second cluster has a core of its own: the page's calls know one. */
  startOther() {
    if (!this.comparing || this.other || this.otherStarts) return;
    this.otherStarts = true;
    createLeaseLab().then((core) => {
      this.other = new LeaseLab.Session(core);
      this.otherPainter = new LeaseLab.Painter(this.find("other-canvas"));
      if (this.session.history) this.show();  // else its own core is still being made
    });
  },

  otherShown() { return Boolean(this.comparing && this.other && !this.session.recorded); },

  /** Behind every change and move of the visit. */
  describeOther() {
    const shown = this.otherShown();
    const known = this.session.settings.known || 0;
    this.find("compare").setAttribute("aria-pressed", String(Boolean(this.comparing)));
    this.find("known").checked = known === 1;
    for (const id of ["other", "own-name", "silence"]) this.find(id).hidden = !shown;
    if (!shown) return;
    const unchecked = this.uncheckedRuns();
    const settings = unchecked ? LeaseLab.kept(this.session.settings) : {...this.session.settings, known: 1 - known};
    const names = unchecked ? LeaseLab.keptNames : [LeaseLab.knownNames[known], LeaseLab.knownNames[1 - known]];
    const link = this.session.linkOf(settings, this.session.steps);
    if (this.otherLink !== link) {
      this.other.open(link);
      this.otherLink = link;
    }
    this.other.runTo(this.now);
    this.find("own-name").textContent = names[0];
    this.find("other-name").textContent = names[1];
    const times = [LeaseLab.silence(this.session.history, this.now), LeaseLab.silence(this.other.history, this.now)];
    const [unknown, told] = (known ? times.reverse() : times).map((time) => Math.round(time));
    this.find("silence").textContent = unchecked ? this.comparedFindings() :
      `Longest time without an answer up to now: ${unknown} ms where the end is not known, ${told} ms where it is.`;
    this.find("other-canvas").setAttribute("aria-label", `${names[1]}: one lane for each node`);
    this.find("other-canvas").style.setProperty("--height", this.find("canvas").style.getPropertyValue("--height"));
    this.find("other-gutter").replaceChildren(...this.other.history.nodes.map((node) => {
      const label = document.createElement("span");
      label.className = "node";
      const {role, term} = this.other.history.roleAt(node, this.now);
      label.textContent = `Node ${this.other.history.nameOf(node.id)}: ${role.replace("_", "-")}, term ${term}`;
      return label;
    }));
  },

  /** What the judges say of both. */
  comparedFindings() {
    const [own, other] = [this.session, this.other].map((one) =>
      one.history.findings.filter((found) => found.at <= this.now).map((found) => LeaseLab.judgedWords(found.oracle)));
    const said = (words) => words.length ? words.join("; ") : "no judge speaks";
    return `As you broke them: ${said(own)}. With the inequalities kept: ${said(other)}.`;
  },

  paintOther(view) {
    if (!this.otherShown()) return;
    this.otherPainter.readColours();
    this.otherPainter.delay = this.session.settings.delay;
    this.otherPainter.draw(this.other.history, view, this.now, this.selected, this.other.usable, this.other.steps);
  },
});

/** What else an address can name than a visit: a story, and the comparison. */
LeaseLab.beforeVisits = {
  open: LeaseLab.App.prototype.openAddress,
  save: LeaseLab.App.prototype.saveAddress,
};

LeaseLab.App.prototype.openAddress = function () {
  this.hideNotes();
  this.endRecording();
  const words = decodeURIComponent(location.hash.slice(1)).split("&");
  const trace = this.embedded();
  const wrong = trace && this.showRecording(trace);
  if (trace && !wrong) return;
  const story = words.find((word) => word.startsWith("story="));
  if (story) {
    this.openDefault();
    return this.openStory(story.slice(6));
  }
  this.comparing = words.includes("compare=1");
  this.startOther();
  LeaseLab.beforeVisits.open.call(this);
  if (wrong) this.say(`The trace in this page cannot be shown: ${wrong}.`, true);
};

LeaseLab.App.prototype.saveAddress = function () {
  if (this.session.recorded) return;
  LeaseLab.beforeVisits.save.call(this);
  if (!this.comparing || location.hash.includes("&compare=1")) return;
  this.saved = location.hash.replace(/&t=|$/, "&compare=1$&");
  location.replace(this.saved);
};
