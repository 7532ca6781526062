// What the visitor can do to the selected node.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.HandsPanel = class {
  /** `act(words)`: a step of visit.h without its time, "kill.1". */
  constructor(root, act) {
    this.root = root;
    this.act = act;
    root.innerHTML = `
      <div class="hand"><span>process</span>${this.button("kill", "Kill", "K")}
        ${this.button("restart", "Restart", "R")}${this.button("pause", "Pause 1.5 s", "P", ".1500")}
        ${this.button("resume", "Resume", "")}</div>
      <div class="hand"><span>machine</span>${this.button("power", "Power off", "")}
        ${this.button("suspend", "Sleep 1.5 s", "", ".1500")}
        ${this.button("slow", "Slow disk 300 ms", "S", ".300")}</div>
      <div class="hand"><span>links</span>${this.button("alone", "Cut off", "C")}
        ${this.button("reunite", "Join all", "J")}</div>
      <div class="hand"><span>one link</span><select id="peer" aria-label="The other node"></select>
        ${this.button("cut", "Cut", "", ".peer")}${this.button("one_way", "Cut one way", "", ".peer")}
        ${this.button("join", "Join", "", ".peer")}</div>
      <div class="hand"><span>clock</span><input id="drift" type="range" min="-400000" max="400000" step="10000"
        value="0" aria-label="How fast its clock runs"><output id="rate">0 %</output>
        ${this.button("jump", "Leap 300 ms", "", ".300")}</div>
      <div class="hand"><span>clients</span>${this.button("write", "Write", "W")}
        ${this.button("read", "Read", "L", ".lease")}${this.button("read", "by quorum", "Q", ".quorum")}
        ${this.button("read", "through the log", "", ".log")}</div>
      <div class="hand"><span>leadership</span>${this.button("transfer", "Transfer to the other node", "T", ".peer")}</div>
      <div class="hand"><span>members</span>${this.button("add", "Add", "A")}${this.button("promote", "Promote", "V")}
        ${this.button("remove", "Remove", "X")}<small id="seat"></small></div>`;
    this.peer = root.querySelector("#peer");
    this.drift = root.querySelector("#drift");
    this.rate = root.querySelector("#rate");
    for (const button of root.querySelectorAll("button")) {
      button.addEventListener("click", () => this.press(button.dataset.verb, button.dataset.more));
    }
    this.drift.addEventListener("change", () => act(`drift.${this.node}.${this.drift.value}`));
    this.drift.addEventListener("input", () => { this.rate.textContent = this.rateText(); });
  }

  button(verb, text, key, more) {
    const hint = key ? ` title="Key: ${key}" aria-keyshortcuts="${key}"` : "";
    return `<button type="button" data-verb="${verb}" data-more="${more || ""}"${hint}>${text}</button>`;
  }

  rateText() {
    const percent = Number(this.drift.value) / 1e4;
    return `${percent > 0 ? "+" : ""}${percent} %`;
  }

  press(verb, more) {
    const words = more === ".peer" ? `.${this.peer.value}` : more || "";
    const where = ["write", "read", "transfer"].includes(verb) ? this.replica : this.node;
    this.act(`${verb}.${where}${words}`);
  }

  /** A lane of a visit with these settings. */
  select(lane, settings) {
    const count = LeaseLab.laneCount(settings) / LeaseLab.groupCount(settings);
    const {node, replica} = LeaseLab.placeOf(settings, lane);
    this.lane = lane;
    this.replica = replica;
    this.groups = LeaseLab.groupCount(settings);
    if (this.node === node && this.count === count) return;
    this.node = node;
    this.count = count;
    const others = [];
    for (let id = 1; id <= count; ++id) if (id !== node) others.push(id);
    this.peer.innerHTML = others.map((id) => `<option value="${id}">node ${id}</option>`).join("");
  }

  /** What makes sense now. */
  show(history, t) {
    const node = history.nodes[this.lane - 1];
    const role = history.roleAt(node, t).role;
    const up = role !== "down";
    const seat = history.seatAt(this.lane, t);
    const shown = this.groups > 1 ? "members change in visits of one group" : LeaseLab.seats[seat];
    const note = this.root.querySelector("#seat");
    if (note.textContent !== shown) note.textContent = shown;
    for (const button of this.root.querySelectorAll("button")) {
      const verb = button.dataset.verb;
      let useful = true;
      if (verb === "restart") useful = !up;
      if (["kill", "power", "pause", "suspend", "slow"].includes(verb)) useful = up;
      if (verb === "resume") useful = Boolean(history.stopAt(node, t));
      if (verb === "add") useful = seat === "no_member" || seat === "removed";
      if (verb === "promote") useful = seat === "learner";
      if (verb === "remove") useful = seat === "learner" || seat === "voter";
      if (["add", "promote", "remove"].includes(verb) && this.groups > 1) useful = false;
      if (verb === "transfer") useful = role === "leader";
      if (button.disabled === useful) button.disabled = !useful;
    }
    if (document.activeElement !== this.drift) {
      const rate = history.rateOf(node, t);
      if (Math.abs(rate) <= 400000) this.drift.value = rate;
      this.rate.textContent = this.rateText();
    }
  }
};
