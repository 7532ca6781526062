// Draws who belongs to the group: over the bands of roles, and along the axis. Nothing here decides anything.
"use strict";

var LeaseLab = LeaseLab || {};

Object.assign(LeaseLab.Painter.prototype, {
  /** Each time in which one membership holds, as far as it is seen: `paint(group, from, to)`. */
  eachGroup(paint) {
    const groups = [null, ...this.history.groups];
    groups.forEach((group, place) => {
      const next = groups[place + 1];
      const from = group ? group.at : 0;
      const to = Math.min(next ? next.at : Infinity, this.now, this.view.to);
      if (to > from && to > this.view.from) paint(group, Math.max(from, this.view.from), to);
    });
  },

  /** A bar along the axis, and a tint of all lanes, while both halves count. */
  drawJoint() {
    this.eachGroup((group, from, to) => {
      if (!group || !group.outgoing.length) return;
      const pen = this.pen;
      pen.fillStyle = this.colours.member;
      this.bar(from, to, this.axis - 4, 4);
      pen.globalAlpha = 0.12;
      this.bar(from, to, this.axis, this.height - this.axis);
      pen.globalAlpha = 1;
    });
  },

  /** Who is no member has no colour of a role; a learner has half of its band. */
  drawSeats(node) {
    if (!this.history.changesMembers()) return;
    const pen = this.pen;
    const y = this.rail(node.id) - 4;
    this.eachGroup((group, from, to) => {
      const seat = this.history.seatIn(group, node.id);
      const out = seat === "removed" || seat === "no_member";
      pen.fillStyle = this.colours[out ? "no-member" : seat === "leaving" ? "member" : "paper"];
      if (seat === "learner") this.bar(from, to, y + 2, 4);
      else if (seat !== "voter") this.bar(from, to, y, out ? 8 : 2);
      const text = LeaseLab.seats[seat];
      const width = this.x(to) - this.x(from);
      if (this.lane < 50 || width < pen.measureText(text).width + 100) return;
      pen.fillStyle = this.colours[out ? "faint" : "member"];
      pen.textAlign = "right";
      pen.fillText(text, Math.min(this.x(to), this.width) - 3, y - 3);
    });
  },

  /** Where other members came into its log, and where it knew them to be committed. */
  drawMembers(node) {
    const pen = this.pen;
    const y = this.top(node.id) + this.lane * 0.92;
    for (const one of node.members) {
      if (!one.index || one.at > this.now || one.at < this.view.from) continue;
      const x = this.x(one.at);
      pen.strokeStyle = pen.fillStyle = this.colours.member;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(x, y - 5);
      pen.lineTo(x + 5, y);
      pen.lineTo(x, y + 5);
      pen.lineTo(x - 5, y);
      pen.closePath();
      if (one.committed) pen.fill();
      pen.stroke();
    }
  },

  /** The marks of members near a place, in words; "" if there are none. */
  membersAt(x, y) {
    const group = y < this.axis && this.history.groupAt(Math.min(this.timeAt(x), this.now));
    if (group && group.outgoing.length) {
      return `the group is joint: a majority of ${group.voters.join(" ")} and one of ${group.outgoing.join(" ")} count`;
    }
    for (const node of this.history.nodes) {
      if (Math.abs(y - this.top(node.id) - this.lane * 0.92) > 6) continue;
      const near = node.members.filter((one) => one.index && one.at <= this.now && Math.abs(this.x(one.at) - x) < 6);
      const one = near[near.length - 1];
      if (!one) continue;
      const name = `node ${this.history.nameOf(node.id)}`;
      return one.committed ? `${name} knows that the members of entry ${one.index} are committed` :
        `${name} goes by the members of entry ${one.index}: ${one.text}`;
    }
    return "";
  },
});
