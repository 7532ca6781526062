// Draws the lanes: one for each node, over true time. Nothing here decides anything.
"use strict";

var LeaseLab = LeaseLab || {};

/** Shapes and colours of answers, by how they were justified. */
LeaseLab.bases = {
  off_thread: {name: "by the lease", colour: "read-lease", shape: "circle"},
  lease: {name: "by the lease, asked of the driver", colour: "read-lease", shape: "ring"},
  quorum: {name: "by a quorum's round", colour: "read-quorum", shape: "square"},
  leader: {name: "by the leader, for a follower", colour: "read-leader", shape: "triangle"},
  log: {name: "through the log", colour: "read-log", shape: "diamond"},
  write: {name: "a write", colour: "write", shape: "bar"},
};

LeaseLab.Painter = class {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.colours = {};
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "faint", "line", "paper", "lane", "follower", "candidate", "leader",
      "down", "promise", "lease", "lease-ink", "append", "reply", "vote", "other", "lost", "tie",
      "read-lease", "read-quorum", "read-leader", "read-log", "write", "stale", "now", "member", "no-member"]) {
      this.colours[name] = style.getPropertyValue("--" + name).trim();
    }
  }

  /** Takes the size that the page gives it. */
  fit() {
    const box = this.canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    const width = Math.round(box.width * scale);
    const height = Math.round(box.height * scale);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
  }

  /** `view`: {from, to} of the axis, `now`: the playhead, `selected`: a node, `steps`: the visitor's. */
  draw(history, view, now, selected, usable, steps) {
    this.fit();
    this.view = view;
    this.now = now;
    this.history = history;
    this.usable = usable;
    this.axis = 24;
    this.lane = (this.height - this.axis) / history.nodes.length;
    const pen = this.pen;
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = "11px system-ui, sans-serif";
    this.drawAxis();
    this.drawJoint();
    for (const node of history.nodes) this.drawLane(node, node.id === selected);
    this.drawMessages();
    for (const node of history.nodes) this.drawTie(node);
    for (const node of history.nodes) this.drawOperations(node);
    this.drawSteps(steps);
    this.drawNow();
  }

  x(t) { return (t - this.view.from) / (this.view.to - this.view.from) * this.width; }
  timeAt(x) { return this.view.from + x / this.width * (this.view.to - this.view.from); }
  top(id) { return this.axis + (id - 1) * this.lane; }
  /** Where messages begin and end. */
  rail(id) { return this.top(id) + this.lane * 0.36; }

  bar(from, to, y, height) {
    const left = Math.max(-2, this.x(from));
    const right = Math.min(this.width + 2, this.x(to));
    if (right <= left) return false;
    this.pen.fillRect(left, y, right - left, height);
    return right - left;
  }

  // ---- True time ----

  drawAxis() {
    const pen = this.pen;
    const span = this.view.to - this.view.from;
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000];
    const step = steps.find((one) => one / span * this.width > 62) || 60000;
    pen.strokeStyle = this.colours.line;
    pen.fillStyle = this.colours.faint;
    pen.textAlign = "center";
    pen.lineWidth = 1;
    for (let t = Math.ceil(Math.max(0, this.view.from) / step) * step; t <= this.view.to; t += step) {
      const x = Math.round(this.x(t)) + 0.5;
      pen.globalAlpha = 0.5;
      pen.beginPath();
      pen.moveTo(x, this.axis - 5);
      pen.lineTo(x, this.height);
      pen.stroke();
      pen.globalAlpha = 1;
      const text = step >= 1000 ? t / 1000 + " s" : t + " ms";
      if (x > 40 && x < this.width - 20) pen.fillText(text, x, 13);
    }
  }

  drawNow() {
    const x = Math.round(this.x(this.now)) + 0.5;
    const pen = this.pen;
    pen.strokeStyle = this.colours.now;
    pen.fillStyle = this.colours.now;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x, this.axis - 8);
    pen.lineTo(x, this.height);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x - 6, this.axis - 14);
    pen.lineTo(x + 6, this.axis - 14);
    pen.lineTo(x, this.axis - 5);
    pen.fill();
  }

  // ---- A lane ----

  drawLane(node, selected) {
    const pen = this.pen;
    const top = this.top(node.id);
    if (selected) {
      pen.fillStyle = this.colours.lane;
      pen.fillRect(0, top + 1, this.width, this.lane - 2);
    }
    pen.strokeStyle = this.colours.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(0, Math.round(top) + 0.5);
    pen.lineTo(this.width, Math.round(top) + 0.5);
    pen.stroke();
    this.drawRuler(node, top);
    this.drawRoles(node);
    this.drawSeats(node);
    this.drawPromises(node);
    this.drawLease(node);
    this.drawDurable(node);
    this.drawMembers(node);
    this.drawStops(node);
  }

  /** The node's own clock: its ticks stand closer together where it runs fast. */
  drawRuler(node, top) {
    const pen = this.pen;
    const span = this.view.to - this.view.from;
    const step = [10, 20, 50, 100, 200, 500, 1000, 5000].find((s) => s / span * this.width > 14) || 5000;
    const labels = step * (step / span * this.width > 34 ? 2 : 5);
    pen.fillStyle = this.colours.faint;
    pen.textAlign = "left";
    pen.font = "10px system-ui, sans-serif";
    const last = Math.min(this.now, this.view.to);
    node.clocks.forEach((line, place) => {
      const next = node.clocks[place + 1];
      const from = Math.max(line.at, this.view.from, 0);
      const to = Math.min(next ? next.at : Infinity, last);
      const pace = 1 + line.rate / 1e6;
      if (to <= from || pace > 10) return;
      const wrong = Math.abs(line.rate) > 500;
      pen.strokeStyle = wrong ? this.colours.tie : this.colours.faint;
      pen.lineWidth = wrong ? 1.5 : 1;
      const first = Math.ceil((line.local + (from - line.at) * pace) / step) * step;
      const end = line.local + (to - line.at) * pace;
      pen.beginPath();
      for (let local = first; local <= end; local += step) {
        const x = Math.round(this.x(line.at + (local - line.local) / pace)) + 0.5;
        const long = Math.round(local) % labels === 0;
        pen.moveTo(x, top + 2);
        pen.lineTo(x, top + (long ? 9 : 5));
        if (long && this.lane > 60) pen.fillText(this.clockText(local), x + 3, top + 11);
      }
      pen.stroke();
    });
    pen.font = "11px system-ui, sans-serif";
  }

  clockText(local) {
    return local % 1000 === 0 ? local / 1000 + " s" : (local / 1000).toFixed(2).replace(/0$/, "");
  }

  drawRoles(node) {
    const pen = this.pen;
    const y = this.rail(node.id) - 4;
    const colours = {
      follower: "follower", pre_candidate: "candidate", candidate: "candidate", leader: "leader",
      down: "down",
    };
    for (let i = node.roles.length - 1; i >= 0; --i) {
      const span = node.roles[i];
      if (span.at > this.now || span.at > this.view.to) continue;
      if (span.end < this.view.from) break;
      pen.fillStyle = this.colours[colours[span.role]];
      const end = Math.min(span.end, this.now);
      const width = this.bar(span.at, end, y, 8);
      if (!width || this.lane < 50 || width < 52 || span.role === "down") continue;
      pen.textAlign = "left";
      const x = Math.max(2, this.x(span.at) + 2);
      pen.fillStyle = this.colours.faint;
      const text = span.term ? `${span.role.replace("_", "-")}, term ${span.term}` : span.role.replace("_", "-");
      if (width > pen.measureText(text).width + 6) pen.fillText(text, x, y - 3);
    }
  }

  /** Solid as far as it has come, pale where it lies ahead. */
  window(from, until, y, height, colour) {
    const pen = this.pen;
    pen.fillStyle = colour;
    this.bar(from, Math.min(until, this.now), y, height);
    if (until <= this.now) return;
    pen.globalAlpha = 0.38;
    this.bar(Math.max(from, this.now), until, y, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    const x = this.x(until);
    pen.beginPath();
    pen.moveTo(x, y - 1);
    pen.lineTo(x, y + height + 1);
    pen.stroke();
  }

  eachWindow(windows, paint) {
    for (let i = windows.length - 1; i >= 0; --i) {
      const window = windows[i];
      if (window.at > this.now || window.at > this.view.to) continue;
      const edge = window.edges[LeaseLab.lastAt(window.edges, this.now)];
      if (!edge) continue;
      const until = window.closed <= this.now ? Math.min(window.closed, edge.until) : edge.until;
      if (until < this.view.from) break;
      paint(window, until, edge);
    }
  }

  drawPromises(node) {
    const y = this.top(node.id) + this.lane * 0.46;
    const height = Math.max(5, this.lane * 0.11);
    this.eachWindow(node.promises, (window, until) => {
      this.window(window.at, until, y, height, this.colours.promise);
      this.label(`promised to ${this.history.nameOf(window.peer)}`, window.at, until, y, height, this.colours.ink);
    });
  }

  label(text, from, until, y, height, colour) {
    const pen = this.pen;
    const left = Math.max(0, this.x(from));
    const right = Math.min(this.width, this.x(until));
    if (height < 11 || right - left < pen.measureText(text).width + 10) return;
    pen.fillStyle = colour;
    pen.textAlign = "left";
    pen.fillText(text, left + 4, y + height - (height - 8) / 2);
  }

  drawLease(node) {
    const y = this.top(node.id) + this.lane * 0.60;
    const height = Math.max(6, this.lane * 0.14);
    this.eachWindow(node.leases, (window, until, edge) => {
      this.window(window.at, until, y, height, this.colours.lease);
      const left = edge.until - this.now;
      // On the pale part, the colour for the solid one cannot be read.
      const solid = this.x(this.now) - Math.max(0, this.x(window.at)) > 150 || left <= 0;
      const text = left > 0 && window.closed > this.now ?
        `lease of term ${window.term}: ${Math.round(left)} ms left` : `lease of term ${window.term}`;
      this.label(text, window.at, until, y, height, this.colours[solid ? "lease-ink" : "ink"]);
    });
  }

  drawDurable(node) {
    const pen = this.pen;
    const y = this.top(node.id) + this.lane - 3;
    pen.fillStyle = this.colours.faint;
    for (let i = LeaseLab.lastAt(node.durable, Math.min(this.now, this.view.to)); i >= 0; --i) {
      const x = this.x(node.durable[i].at);
      if (x < 0) break;
      pen.beginPath();
      pen.moveTo(x, y - 5);
      pen.lineTo(x + 3, y);
      pen.lineTo(x - 3, y);
      pen.fill();
    }
  }

  drawStops(node) {
    const pen = this.pen;
    for (const stop of node.stops) {
      if (stop.at > this.now || stop.end < this.view.from) continue;
      const left = Math.max(0, this.x(stop.at));
      const right = Math.min(this.width, this.x(Math.min(stop.end, this.now)));
      if (right <= left) continue;
      const y = this.rail(node.id) - 6;
      pen.save();
      pen.beginPath();
      pen.rect(left, y, right - left, 12);
      pen.clip();
      pen.strokeStyle = this.colours.ink;
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (let x = left - 12 - left % 6; x < right; x += 6) {
        pen.moveTo(x, y + 12);
        pen.lineTo(x + 12, y);
      }
      pen.stroke();
      pen.restore();
    }
  }
};
