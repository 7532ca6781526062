// What the visitor's hands reach: buttons, keys, and the lanes themselves.
"use strict";

var LeaseLab = LeaseLab || {};

Object.assign(LeaseLab.App.prototype, {
  listen() {
    const press = (id, action) => this.find(id).addEventListener("click", action);
    press("play", () => this.toggle());
    press("step", () => this.step());
    press("back", () => this.back());
    press("closer", () => this.zoom(0.6));
    press("wider", () => this.zoom(1 / 0.6));
    press("undo", () => this.undo());
    press("link", () => this.copyLink());
    press("leave", () => this.leaveRecording());
    this.listenToTour();
    this.listenToFiles();
    this.listenToStories();
    this.listenToCompare();
    this.listenToMessages();
    this.listenToUnchecked();
    this.listenToGap();
    press("theme", () => this.changeTheme());
    this.find("scrub").addEventListener("input", (event) => {
      this.stop();
      this.moveTo(Number(event.target.value), true);
    });
    this.find("scrub").addEventListener("change", () => this.saveAddress());
    window.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => this.show());
    window.addEventListener("hashchange", () => {
      if (location.hash !== this.saved) this.openAddress();
    });
    this.listenToLanes(this.find("canvas"));
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.theme(dark.matches);
    dark.addEventListener("change", () => this.theme(dark.matches));
  },

  listenToLanes(canvas) {
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = {x: event.clientX, y: event.clientY, now: this.now, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return this.point(event);
      const far = event.clientX - held.x;
      if (Math.abs(far) < 3 && !held.moved) return;
      held.moved = true;
      this.stop();
      this.moveTo(held.now - far / canvas.clientWidth * this.span, true);
    });
    const release = (event) => {
      if (held && !held.moved && event.type === "pointerup") this.chooseAt(event);
      if (held && held.moved) this.saveAddress();
      held = null;
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return this.zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15);
      this.stop();
      this.moveTo(this.now + event.deltaX / canvas.clientWidth * this.span, true);
    }, {passive: false});
  },

  placeOf(event) {
    const box = this.find("canvas").getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  },

  point(event) {
    const {x, y} = this.placeOf(event);
    const text = this.painter.wordsAt(x, y);
    if (text) this.find("words").textContent = text;
  },

  chooseAt(event) {
    const {x, y} = this.placeOf(event);
    if (this.chooseMessageAt(x, y, event.pointerType === "mouse" ? 8 : 16)) return;
    const id = Math.floor((y - this.painter.axis) / this.painter.lane) + 1;
    if (id >= 1) this.select(id);
  },

  key(event) {
    const at = event.target;
    const typing = at instanceof HTMLSelectElement || (at instanceof HTMLInputElement);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) return;
    if (at instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter")) return;
    const action = this.keyAction(event);
    if (!action) return;
    event.preventDefault();
    action();
  },

  keyAction(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const moves = {
      " ": () => this.toggle(),
      ArrowRight: () => event.shiftKey ? this.moveTo(this.now + 100) : this.step(),
      ArrowLeft: () => event.shiftKey ? this.moveTo(this.now - 100) : this.back(),
      Home: () => { this.stop(); this.moveTo(0); },
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      u: () => this.undo(),
    };
    if (moves[key]) return moves[key];
    if (key >= "1" && key <= "9") return () => this.chooseNode(Number(key));
    const button = this.find("hands-panel").querySelector(`[aria-keyshortcuts="${key.toUpperCase()}"]`);
    if (!button) return null;
    return () => { if (!button.disabled) button.click(); };
  },

  theme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.painter.readColours();
    if (this.session.history) this.show();
  },

  changeTheme() { this.theme(document.documentElement.dataset.theme !== "dark"); },

  buildLegend() {
    const box = (colour, pale) => `<rect x="0" y="3" width="${pale ? 20 : 34}" height="8" fill="var(--${colour})"/>` +
      (pale ? `<rect x="20" y="3" width="14" height="8" fill="var(--${colour})" opacity="0.38"/>` : "");
    const line = (colour, extra) =>
      `<path d="M1 2 L31 12" stroke="var(--${colour})" stroke-width="2" ${extra || ""}/>`;
    const dot = (colour, shape) => ({
      circle: `<circle cx="17" cy="7" r="4" fill="var(--${colour})"/>`,
      ring: `<circle cx="17" cy="7" r="4" fill="none" stroke="var(--${colour})" stroke-width="1.5"/>`,
      square: `<rect x="13" y="3" width="8" height="8" fill="var(--${colour})"/>`,
      triangle: `<path d="M17 2 L22 11 L12 11 Z" fill="var(--${colour})"/>`,
      diamond: `<path d="M17 2 L22 7 L17 12 L12 7 Z" fill="var(--${colour})"/>`,
      bar: `<rect x="15" y="3" width="3" height="8" fill="var(--${colour})"/>`,
    })[shape];
    const ruler = [2, 8, 14, 20, 26, 32].map((x) => `<path d="M${x} 2 V9" stroke="var(--faint)"/>`).join("");
    const entries = [
      [ruler, "the node's own clock: close ticks run fast, orange ones are wrong by its present rate"],
      [box("leader"), "leader"], [box("follower"), "follower"], [box("candidate"), "asks for votes"],
      [box("down"), "no process"],
      [box("leader") + [0, 6, 12, 18, 24].map((x) =>
        `<path d="M${x} 12 L${x + 9} 2" stroke="var(--ink)" stroke-width="1.5"/>`).join(""),
      "stands still, or its machine sleeps"],
      [box("promise", true), "a promise: this node elects nobody else; pale is still ahead"],
      [box("lease", true), "the leader's lease: until then a read needs nobody else"],
      [line("tie"), "the acknowledgement that completed the quorum, and the edge of the lease that it moved"],
      [line("append"), "append (thick: with entries)"], [line("reply"), "its acknowledgement"],
      [line("vote"), "pre-vote and vote"], [line("other"), "a beat between two processes, and its answer"],
      ['<path d="M1 2 L31 12" stroke="var(--tie)" stroke-width="7" opacity="0.4"/>' + line("append"),
        "a message under way that you have chosen"],
      [line("lost", 'stroke-dasharray="3 3"'), "lost"],
      [`<path d="M14 1 V13 M14 1 L21 4.5 L14 8" fill="var(--ink)" stroke="var(--ink)"/>`, "a step of yours"],
      [box("no-member"), "not a member of the group, or removed; a learner's band is hollow"],
      [`<path d="M17 2 L22 7 L17 12 L12 7 Z" fill="none" stroke="var(--member)" stroke-width="1.5"/>`,
        "other members stand in its log; filled: they are committed"],
      [`<rect x="0" y="5" width="34" height="4" fill="var(--member)"/>`, "the group is joint: both halves count"],
      [`<path d="M17 4 L20 10 L14 10 Z" fill="var(--faint)"/>`, "the log is durable up to here"],
    ];
    for (const basis of Object.values(LeaseLab.bases)) {
      const name = basis.colour === "write" ? basis.name : `a read justified ${basis.name}`;
      entries.push([dot(basis.colour, basis.shape), name]);
    }
    this.find("legend").innerHTML = entries.map(([sign, text]) =>
      `<div><dt><svg aria-hidden="true">${sign}</svg></dt><dd>${text}</dd></div>`).join("");
    this.find("keys").innerHTML = LeaseLab.keyHelp.map(([key, text]) =>
      `<div><dt>${key}</dt><dd>${text}</dd></div>`).join("");
  },
});

createLeaseLab().then((core) => {
  window.leaseLab = new LeaseLab.App(core);
}).catch((error) => {
  document.getElementById("words").textContent = `The lab does not start in this browser: ${error}`;
});
