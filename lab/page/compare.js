// The same visit twice: where the end of a process is known to the others, and where it is not.
"use strict";

var LeaseLab = LeaseLab || {};

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
      this.startTwin();
      this.show();
    });
    this.find("known").addEventListener("change", (event) => {
      const wrong = this.change({...this.session.settings, known: event.target.checked ? 1 : 0});
      if (wrong) this.say(wrong, true);
    });
  },

  /** The second cluster has a core of its own: the page's calls know one. */
  startTwin() {
    if (!this.comparing || this.twin || this.twinStarts) return;
    this.twinStarts = true;
    createLeaseLab().then((core) => {
      this.twin = new LeaseLab.Session(core);
      this.twinPainter = new LeaseLab.Painter(this.find("twin-canvas"));
      this.show();
    });
  },

  twinShown() { return Boolean(this.comparing && this.twin && !this.session.recorded); },

  /** Behind every change and move of the visit. */
  describeTwin() {
    const shown = this.twinShown();
    const known = this.session.settings.known || 0;
    this.find("compare").setAttribute("aria-pressed", String(Boolean(this.comparing)));
    this.find("known").checked = known === 1;
    for (const id of ["twin", "own-name", "silence"]) this.find(id).hidden = !shown;
    if (!shown) return;
    const settings = {...this.session.settings, known: 1 - known};
    const link = this.session.linkOf(settings, this.session.steps);
    if (this.twinLink !== link) {
      this.twin.open(link);
      this.twinLink = link;
    }
    this.twin.runTo(this.now);
    this.find("own-name").textContent = LeaseLab.knownNames[known];
    this.find("twin-name").textContent = LeaseLab.knownNames[1 - known];
    const times = [LeaseLab.silence(this.session.history, this.now), LeaseLab.silence(this.twin.history, this.now)];
    const [unknown, told] = (known ? times.reverse() : times).map((time) => Math.round(time));
    this.find("silence").textContent = `Longest time without an answer up to now: ${unknown} ms where the end is not ` +
      `known, ${told} ms where it is.`;
    this.find("twin-canvas").setAttribute("aria-label", `${LeaseLab.knownNames[1 - known]}: one lane for each node`);
    this.find("twin-canvas").style.setProperty("--height", this.find("canvas").style.getPropertyValue("--height"));
    this.find("twin-gutter").replaceChildren(...this.twin.history.nodes.map((node) => {
      const label = document.createElement("span");
      label.className = "node";
      const {role, term} = this.twin.history.roleAt(node, this.now);
      label.textContent = `Node ${node.id}: ${role.replace("_", "-")}, term ${term}`;
      return label;
    }));
  },

  paintTwin(view) {
    if (!this.twinShown()) return;
    this.twinPainter.readColours();
    this.twinPainter.delay = this.painter.delay;
    this.twinPainter.draw(this.twin.history, view, this.now, this.selected, this.twin.usable, this.twin.steps);
  },
});
