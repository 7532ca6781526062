// Draws what passes between the lanes, and what clients see.
"use strict";

var LeaseLab = LeaseLab || {};

Object.assign(LeaseLab.Painter.prototype, {
  colourOf(message) {
    if (message.lost) return this.colours.lost;
    if (message.what === "append" || message.what === "snapshot") return this.colours.append;
    if (message.what === "append_reply") return this.colours.reply;
    if (/vote/.test(message.what)) return this.colours.vote;
    return this.colours.other;
  },

  drawMessages() {
    const messages = this.history.messages;
    // No message of the lab is under way for longer.
    const first = LeaseLab.lastAt(messages, this.view.from - Math.max(1500, this.history.longestWay || 0)) + 1;
    const last = Math.min(this.now, this.view.to);
    for (let i = first; i < messages.length && messages[i].at <= last; ++i) {
      if (messages[i].end >= this.view.from) this.drawMessage(messages[i]);
    }
  },

  drawMessage(message) {
    const pen = this.pen;
    const y0 = this.rail(message.from);
    const y1 = this.rail(message.to);
    const under = message.end > this.now;
    // One under way is drawn as far as it would be at the usual pace.
    const pace = Math.min(0.9, (this.now - message.at) / (1.4 * this.delay));
    const share = under ? pace : message.lost ? 0.6 : 1;
    const end = under ? this.now : message.end;
    const x0 = this.x(message.at);
    const x1 = message.lost && !under ? x0 + Math.max(6, (this.x(end) - x0) * 0.6) : this.x(end);
    const y = y0 + (y1 - y0) * share;
    pen.strokeStyle = this.colourOf(message);
    pen.fillStyle = pen.strokeStyle;
    if (message === this.chosen) this.halo(x0, y0, x1, y);
    pen.lineWidth = message.why === "entries" ? 1.8 : 1;
    pen.globalAlpha = under ? 1 : 0.75;
    pen.setLineDash(message.lost ? [3, 3] : []);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y);
    pen.stroke();
    pen.setLineDash([]);
    if (message.lost && !under) this.cross(x1, y);
    else this.head(x0, y0, x1, y);
    pen.globalAlpha = 1;
  },

  head(x0, y0, x1, y1) {
    const pen = this.pen;
    const angle = Math.atan2(y1 - y0, x1 - x0);
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - 6 * Math.cos(angle - 0.4), y1 - 6 * Math.sin(angle - 0.4));
    pen.lineTo(x1 - 6 * Math.cos(angle + 0.4), y1 - 6 * Math.sin(angle + 0.4));
    pen.fill();
  },

  cross(x, y) {
    const pen = this.pen;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x - 4, y - 4);
    pen.lineTo(x + 4, y + 4);
    pen.moveTo(x + 4, y - 4);
    pen.lineTo(x - 4, y + 4);
    pen.stroke();
  },

  // ---- The edge of a lease ----

  /** The acknowledgement that completed the quorum, the send that began its round, and the edge of
   *  the lease that it moved: the edge stands U behind the send. */
  drawTie(node) {
    const present = this.history.windowAt(node.leases, this.now);
    if (!present || present.window.closed <= this.now) return;
    const edge = present.edge;
    const pen = this.pen;
    const y = this.top(node.id) + this.lane * 0.60;
    const height = Math.max(6, this.lane * 0.14);
    const below = y + height + Math.min(9, this.lane * 0.1);
    const began = this.x(edge.began);
    const until = this.x(edge.until);
    pen.strokeStyle = this.colours.tie;
    pen.fillStyle = this.colours.tie;
    pen.lineWidth = 2.4;
    if (edge.arrow) {
      pen.beginPath();
      pen.moveTo(this.x(edge.arrow.at), this.rail(edge.arrow.from));
      pen.lineTo(this.x(edge.at), this.rail(node.id));
      pen.stroke();
      this.head(this.x(edge.arrow.at), this.rail(edge.arrow.from), this.x(edge.at),
        this.rail(node.id));
    }
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(this.x(edge.at), this.rail(node.id));
    pen.bezierCurveTo(this.x(edge.at) + 14, y + 2, until - 24, this.rail(node.id), until, y);
    pen.stroke();
    this.head(until - 2, y - 7, until, y);
    pen.beginPath();
    pen.moveTo(began, this.rail(node.id));
    pen.lineTo(began, below);
    pen.lineTo(until, below);
    pen.lineTo(until, y + height);
    pen.stroke();
    this.tieText(edge, began, until, below);
  },

  tieText(edge, began, until, below) {
    const pen = this.pen;
    const usable = this.usable || edge.until - edge.began;  // of a recording only the edges are known
    const text = `U = ${Math.round(usable)} ms of its own clock, from the send of ${edge.beat ? "beat" : "round"} ${edge.round}`;
    const short = `U = ${Math.round(usable)} ms`;
    const left = Math.max(began, 0, this.x(this.now) + 2);
    const room = Math.min(until, this.width) - left;
    const shown = room > pen.measureText(text).width + 8 ? text : short;
    if (this.lane < 70 || room < pen.measureText(shown).width + 8) return;
    pen.textAlign = "left";
    pen.fillText(shown, left + 4, below + 10);
  },

  // ---- Steps of the visitor ----

  /** A flag for each; `steps` are texts, "1500.kill.1". */
  drawSteps(steps) {
    const pen = this.pen;
    let last = {node: 0, right: 0};
    for (const step of steps) {
      const [at, verb, word] = step.split(".");
      const node = LeaseLab.laneOfWord(this.history, word);
      const x = this.x(Number(at));
      if (Number(at) > this.now || x < 0 || x > this.width) continue;
      const top = this.top(node) + Math.min(14, this.lane * 0.12);
      pen.strokeStyle = this.colours.ink;
      pen.fillStyle = this.colours.ink;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(x, top);
      pen.lineTo(x, this.rail(node) + 5);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x, top);
      pen.lineTo(x + 7, top + 3.5);
      pen.lineTo(x, top + 7);
      pen.fill();
      // What would lie on another flag's word is left to the list of events.
      const shown = verb.replace("_", " ");
      if (this.lane < 80 || (last.node === node && x < last.right)) continue;
      pen.textAlign = "left";
      pen.fillText(shown, x + 9, top + 8);
      last = {node, right: x + 14 + pen.measureText(shown).width};
    }
  },

  // ---- Clients ----

  drawOperations(node) {
    const y = this.top(node.id) + this.lane * 0.80;
    const list = node.operations;
    const last = Math.min(this.now, this.view.to);
    for (let i = LeaseLab.lastAt(list, last); i >= 0; --i) {
      const operation = list[i];
      if (operation.at < this.view.from - 3500) break;
      const under = operation.end > this.now;
      const end = under ? this.now : operation.end;
      if (end < this.view.from) continue;
      this.drawOperation(operation, under, this.x(operation.at), this.x(end), y);
    }
  },

  drawOperation(operation, under, from, to, y) {
    const pen = this.pen;
    const write = operation.kind === "write";
    const basis = LeaseLab.bases[write ? "write" : operation.basis];
    const stale = operation.failure === "stale";
    let colour = basis ? this.colours[basis.colour] : this.colours.faint;
    if (under) colour = this.colours.faint;
    if (stale) colour = this.colours.stale;
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.lineWidth = 1;
    const row = write ? y + 9 : y;
    if (to - from > 3) {
      pen.beginPath();
      pen.moveTo(from, row);
      pen.lineTo(to, row);
      pen.stroke();
    }
    if (under) return this.shape("dot", to, row);
    if (operation.failure && !stale) return this.shape("cross", to, row);
    this.shape(stale ? "star" : basis ? basis.shape : "ring", to, row);
  },

  shape(kind, x, y) {
    const pen = this.pen;
    const size = kind === "star" ? 7 : 4;
    pen.lineWidth = 1.5;
    pen.beginPath();
    if (kind === "circle" || kind === "ring" || kind === "dot") {
      pen.arc(x, y, kind === "dot" ? 2 : size - 0.5, 0, 2 * Math.PI);
      return kind === "ring" ? pen.stroke() : pen.fill();
    }
    if (kind === "square") return pen.fillRect(x - 3.5, y - 3.5, 7, 7);
    if (kind === "bar") return pen.fillRect(x - 1.5, y - 4, 3, 8);
    if (kind === "cross") return this.cross(x, y);
    const corners = kind === "triangle" ? 3 : kind === "diamond" ? 4 : 10;
    for (let i = 0; i < corners; ++i) {
      const far = kind === "star" && i % 2 ? size * 0.45 : size + 0.5;
      const angle = -Math.PI / 2 + i * 2 * Math.PI / corners;
      pen.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
    }
    pen.fill();
  },

  /** What stands at a place of the canvas, in words; "" if nothing does. */
  wordsAt(x, y) {
    const members = this.membersAt(x, y);
    if (members) return members;
    const t = this.timeAt(x);
    const reach = 5 / this.width * (this.view.to - this.view.from);
    for (const node of this.history.nodes) {
      const row = this.top(node.id) + this.lane * 0.80;
      if (Math.abs(y - row - 4) > 10) continue;
      const near = node.operations.filter((one) =>
        Math.abs(Math.min(one.end, this.now) - t) < reach && one.at <= this.now);
      if (near.length) return LeaseLab.operationText(this.history.nameOf(node.id), near[near.length - 1], this.now);
    }
    return this.messageAt(x, y);
  },

  messageNear(x, y, reach, messages) {
    let best = null;
    let closest = reach;
    for (const message of messages) {
      if (message.at > this.now || message.end < this.view.from) continue;
      const x0 = this.x(message.at);
      const x1 = this.x(Math.min(message.end, this.now));
      if (x < x0 - reach || x > x1 + reach) continue;
      const y0 = this.rail(message.from);
      const y1 = this.rail(message.to);
      const share = Math.min(1, Math.max(0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) /
        ((x1 - x0) ** 2 + (y1 - y0) ** 2)));
      const far = Math.hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0));
      if (far < closest) {
        closest = far;
        best = message;
      }
    }
    return best;
  },

  messageAt(x, y) {
    const best = this.messageNear(x, y, 6, this.history.messages);
    if (!best) return "";
    const what = best.what.replace(/_/g, " ");
    const took = best.end <= this.now ? `, ${(best.end - best.at).toFixed(1)} ms` : ", under way";
    const name = (id) => this.history.nameOf(id);
    return `${what} ${name(best.from)} → ${name(best.to)}${best.lost ? ", lost" : took}: ${best.text}`;
  },
});

/** "node 1: a read by the lease: x = 3 (0.2 ms)". */
LeaseLab.operationText = function (name, operation, now) {
  const basis = LeaseLab.bases[operation.kind === "write" ? "write" : operation.basis];
  const what = operation.kind === "write" ? "a write" : `a read ${basis ? basis.name : ""}`;
  if (operation.end > now) return `node ${name}: ${what.trim()}, not answered yet`;
  const time = (operation.end - operation.at).toFixed(1);
  const failed = operation.failure ? ` (${operation.failure})` : "";
  return `node ${name}: ${what.trim()}: ${operation.text || "no answer"}${failed}, ${time} ms`;
};
