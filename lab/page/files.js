// Files: scenarios and traces that the visitor opens, and the visit as a scenario.
"use strict";

var LeaseLab = LeaseLab || {};

// A text goes to the core over its stack.
LeaseLab.fileLimits = {scenario: 200000, trace: 48 << 20};

Object.assign(LeaseLab.App.prototype, {
  listenToFiles() {
    const picker = this.find("file");
    this.find("open-file").addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      if (picker.files.length) this.takeFile(picker.files[0]);
      picker.value = "";
    });
    this.find("save-scenario").addEventListener("click", () => this.saveScenario());
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer && event.dataTransfer.files.length) this.takeFile(event.dataTransfer.files[0]);
    });
  },

  listenToStories() {
    this.stories = JSON.parse(this.find("stories-data").textContent);
    const list = this.find("stories");
    for (const [name, text] of Object.entries(this.stories)) {
      list.append(new Option(text.slice(2, text.indexOf("\n")), name));
    }
    list.addEventListener("change", () => {
      if (list.value) location.hash = `#story=${list.value}`;
      list.value = "";
    });
  },

  /** A scenario file of the docs, as it runs on its own cores. */
  openStory(name) {
    const text = Object.hasOwn(this.stories, name) ? this.stories[name] : "";
    if (!text) return this.say(`There is no story called ${name}.`, true);
    const trace = this.files.playScenario(text);
    const wrong = trace[0] === "!" ? trace.slice(1) : this.showRecording(trace);
    this.say(wrong || `A story of the protocol: docs/scenarios/${name}.scenario tells it in words.`, true);
  },

  takeFile(file) {
    if (file.size > LeaseLab.fileLimits.trace) {
      return this.say(`${file.name} has ${file.size} bytes; a trace has at most ${LeaseLab.fileLimits.trace} here.`, true);
    }
    return file.text().then((text) => this.openText(text, file.name),
      () => this.say(`${file.name} cannot be read.`, true));
  },

  /** A scenario begins with its title, a trace with a record. */
  openText(text, name) {
    if (text.startsWith("#")) return this.openScenario(text, name);
    const wrong = this.showRecording(text);
    if (wrong) this.say(`${name} is no scenario, and no trace that can be shown: ${wrong}.`, true);
  },

  openScenario(text, name) {
    const size = new TextEncoder().encode(text).length;
    if (size > LeaseLab.fileLimits.scenario) {
      return this.say(`${name} has ${size} bytes; a scenario has at most ${LeaseLab.fileLimits.scenario} here.`, true);
    }
    const lines = this.files.fromScenario(text).split("\n");
    const marked = (mark) => lines.filter((line) => line[0] === mark).map((line) => line.slice(1));
    const [link] = marked("=");
    const without = marked("!");
    if (link && !without.length) return this.openConverted(link, name, marked("?"));
    // Its own run is shown as it was, whatever its words are.
    const trace = this.files.playScenario(text);
    if (trace[0] === "!") return this.say(`${name} does not run: ${trace.slice(1)}`, true);
    const wrong = this.showRecording(trace);
    if (wrong) return this.say(`${name} cannot be shown: ${wrong}.`, true);
    this.showNotes(`${name} is shown as it ran on its own cores, not as a visit. ` +
      "These commands have no counterpart in the lab:", without);
    this.say(`${name} is shown as it ran. ${without.length} of its commands have no counterpart in the lab.`);
  },

  openConverted(link, name, leftOut) {
    this.stop();
    this.find("tour-card").hidden = true;
    // As any other link: it is the address from now on.
    this.saved = `#${link}`;
    location.hash = this.saved;
    this.openAddress();
    this.showNotes(`${name} is now a visit of the lab: the same steps, and not the same chances. ` +
      (leftOut.length ? "These lines are left out:" : "Nothing was left out."), leftOut);
    this.say(`${name} is now a visit of the lab, with ${this.session.steps.length} steps.`);
  },

  /** A few lines under the lanes. */
  showNotes(title, lines) {
    const notes = this.find("notes");
    const items = lines.slice(0, 40).map((line) => {
      const item = document.createElement("li");
      item.textContent = line;
      return item;
    });
    if (lines.length > items.length) items.push(`and ${lines.length - items.length} more`);
    const list = document.createElement("ul");
    list.append(...items);
    notes.replaceChildren(title, list);
    notes.hidden = !title;
  },

  hideNotes() { this.find("notes").hidden = true; },

  scenarioText() {
    if (this.uncheckedRuns()) return "!no scenario takes numbers that break an inequality; let the core check them first";
    return this.files.toScenario(this.session.link(), Math.ceil(this.now));
  },

  saveScenario() {
    if (this.session.recorded) return this.say(LeaseLab.readOnly, true);
    const text = this.scenarioText();
    if (text[0] === "!") return this.say(`This visit cannot be a scenario: ${text.slice(1)}.`, true);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: "text/plain"}));
    link.download = "visit.scenario";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    return this.say("visit.scenario holds this visit up to now: leasehold scenario visit.scenario runs it.", true);
  },
});
