// Makes a variant of the core from the core and what differs (lab/museum/difference.py). Knows nothing of the page.
"use strict";

var LeaseLab = LeaseLab || {};

LeaseLab.patch = {
  bytesOf(base64) { return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)); },

  async unpacked(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  },

  applied(base, patch) {
    let at = 0;
    const number = () => {
      let value = 0;
      for (let scale = 1; ; scale *= 128) {
        const byte = patch[at++];
        value += (byte & 127) * scale;
        if (!(byte & 128)) return value;
      }
    };
    const result = new Uint8Array(number());
    let made = 0;
    let behind = 0;
    while (made < result.length) {
      const given = number();
      result.set(patch.subarray(at, at + given), made);
      at += given;
      made += given;
      const length = number();
      const ahead = number();
      behind += given + (ahead % 2 ? -(ahead + 1) / 2 : ahead / 2);
      result.set(base.subarray(behind, behind + length), made);
      made += length;
      behind += length;
    }
    return result;
  },

  /** The bytes of the variant. Both arguments are in base64. */
  async variant(core, difference) {
    return this.applied(this.bytesOf(core), await this.unpacked(this.bytesOf(difference)));
  },
};
