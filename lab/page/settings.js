// The numbers of the group: sliders, the two inequalities with their numbers, and what the core says.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.sliders = [
  {name: "lease", text: "D: how long a voter promises", min: 100, max: 4000, step: 20, unit: "ms"},
  {name: "heartbeat", text: "R: time between two rounds", min: 10, max: 800, step: 5, unit: "ms"},
  {name: "drift", text: "ρ: how wrong a clock may be", min: 0, max: 400000, step: 2500, unit: "%"},
  {name: "margin", text: "σ: what the holder leaves unused", min: 0, max: 500, step: 5, unit: "ms"},
  {name: "rtt", text: "rtt: longest healthy round trip", min: 5, max: 500, step: 5, unit: "ms"},
  {name: "election", text: "ET: shortest election timeout", min: 50, max: 2000, step: 10, unit: "ms"},
  {name: "delay", text: "how long a message takes here", min: 1, max: 200, step: 1, unit: "ms"},
  {name: "reads", text: "a read at each leader every", min: 0, max: 500, step: 5, unit: "ms"},
  {name: "writes", text: "a write every", min: 0, max: 2000, step: 20, unit: "ms"},
];

LeaseLab.verdicts = {
  safety: ["✓ Safe: two leases never meet.", "✗ Not safe: nothing of a promise is left to use.",
    "✗ Not safe: the holder counts on more of a promise than is sure."],
  availability: ["✓ Available: one lost renewal costs nothing.",
    "✗ Not available: one lost renewal costs the lease."],
};

/** lease::Timing's two inequalities. The core has the last word: Session.change(). */
LeaseLab.inequalities = function (numbers) {
  const rho = numbers.drift / 1e6;
  const sure = numbers.lease * (1 - rho) / (1 + rho);
  const usable = sure - numbers.margin;
  const needed = numbers.heartbeat + numbers.rtt + numbers.heartbeat;
  const shown = (number) => String(Math.round(number * 10) / 10);
  return {
    usable,
    sure,
    safety: {
      holds: usable > 0 && numbers.margin >= 0,
      verdict: usable > 0 && numbers.margin < 0 ? 2 : undefined,
      text: `U = D·(1−ρ)/(1+ρ) − σ = ${numbers.lease}·${shown(1 - rho)}/${shown(1 + rho)} − ` +
        `${numbers.margin} = ${shown(usable)} ms > 0`,
    },
    availability: {
      holds: needed < usable && 3 * numbers.heartbeat <= usable,
      text: `R + rtt + R = ${numbers.heartbeat} + ${numbers.rtt} + ${numbers.heartbeat} = ` +
        `${needed} ms < U = ${shown(usable)} ms, and R = ${numbers.heartbeat} ≤ U/3 = ` +
        `${shown(usable / 3)} ms`,
    },
  };
};

LeaseLab.SettingsPanel = class {
  /** `change(settings)` returns why they are refused; "" if they are taken. */
  constructor(root, change) {
    this.root = root;
    this.change = change;
    this.outputs = {};
    this.inputs = {};
    this.build();
  }

  build() {
    this.root.innerHTML = `<div class="row"><fieldset><legend>nodes</legend>
      ${[3, 5, 7].map((n) => `<label><input type="radio" name="nodes" value="${n}"> ${n}</label>`).join("")}
      </fieldset><fieldset><legend>spare nodes</legend>
      ${[0, 1, 2].map((n) => `<label><input type="radio" name="spare" value="${n}"> ${n}</label>`).join("")}
      </fieldset><fieldset><legend>groups on them</legend>
      ${[1, 2].map((n) => `<label><input type="radio" name="groups" value="${n}"> ${n}</label>`).join("")}
      </fieldset><label>seed <input id="seed" type="number" min="0" max="999999999" step="1"></label>
      <button type="button" id="reset">Defaults</button></div><div id="slides"></div>
      <div class="rule" id="safety"><b></b><br><code></code></div>
      <div class="rule" id="availability"><b></b><br><code></code></div>
      <p class="refused" id="refused" role="status"></p>`;
    const slides = this.root.querySelector("#slides");
    for (const slider of LeaseLab.sliders) slides.append(this.slide(slider));
    for (const radio of this.root.querySelectorAll("[name=nodes]")) {
      radio.addEventListener("change", () => this.changed("nodes", Number(radio.value)));
    }
    for (const radio of this.root.querySelectorAll("[name=spare]")) {
      radio.addEventListener("change", () => this.changed("spare", Number(radio.value)));
    }
    for (const radio of this.root.querySelectorAll("[name=groups]")) {
      radio.addEventListener("change", () => this.changed("groups", Number(radio.value)));
    }
    this.seed = this.root.querySelector("#seed");
    this.seed.addEventListener("change", () => this.changed("seed", Number(this.seed.value)));
    this.root.querySelector("#reset").addEventListener("click", () => this.reset());
  }

  slide(slider) {
    const row = document.createElement("div");
    row.className = "slide";
    row.innerHTML = `<label for="s-${slider.name}">${slider.text}</label><output for="s-${slider.name}"></output>
      <input type="range" id="s-${slider.name}" min="${slider.min}" max="${slider.max}" step="${slider.step}">`;
    const input = row.querySelector("input");
    this.inputs[slider.name] = input;
    this.outputs[slider.name] = row.querySelector("output");
    input.addEventListener("input", () => this.changed(slider.name, Number(input.value)));
    return row;
  }

  reset() {
    this.changedAll({...this.shown, lease: 1000, heartbeat: 100, drift: 100000, margin: 10, rtt: 50,
      election: 300, delay: 15, reads: 50, writes: 400});
  }

  changed(name, value) { this.changedAll({...this.shown, [name]: value}); }

  changedAll(settings) {
    this.show(settings);
    const wrong = this.change(settings);
    const note = this.root.querySelector("#refused");
    note.textContent = wrong ? `Refused: ${wrong}. The cluster keeps the numbers it had.` : "";
  }

  /** The numbers that the cluster has. */
  show(settings) {
    this.shown = {...settings};
    this.inputs.margin.min = settings.unchecked ? -500 : 0;
    for (const slider of LeaseLab.sliders) {
      const value = settings[slider.name];
      this.inputs[slider.name].value = value;
      const text = slider.unit === "%" ? `${value / 1e4} %` : `${value} ms`;
      this.outputs[slider.name].textContent = value === 0 && slider.min === 0 && slider.unit === "ms" &&
        slider.name !== "margin" ? "never" : text;
      this.inputs[slider.name].setAttribute("aria-valuetext", this.outputs[slider.name].textContent);
    }
    for (const radio of this.root.querySelectorAll("[name=nodes]")) {
      radio.checked = Number(radio.value) === settings.nodes;
    }
    for (const radio of this.root.querySelectorAll("[name=spare]")) {
      radio.checked = Number(radio.value) === (settings.spare || 0);
    }
    for (const radio of this.root.querySelectorAll("[name=groups]")) {
      radio.checked = Number(radio.value) === (settings.groups || 1);
    }
    if (document.activeElement !== this.seed) this.seed.value = settings.seed;
    const rules = LeaseLab.inequalities(settings);
    for (const name of ["safety", "availability"]) {
      const box = this.root.querySelector("#" + name);
      box.classList.toggle("broken", !rules[name].holds);
      box.querySelector("b").textContent = LeaseLab.verdicts[name][rules[name].verdict || (rules[name].holds ? 0 : 1)];
      box.querySelector("code").textContent = rules[name].text;
    }
  }

  clearNote() { this.root.querySelector("#refused").textContent = ""; }
};
