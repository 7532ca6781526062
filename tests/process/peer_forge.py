"""Hellos and messages of peers, forged: any field of wire/raft.proto, with any value."""

import re
import struct

from bad_peers import HELLO, MESSAGE, REFUSAL, header

HANDSHAKE_VERSION = 0
MESSAGE_VERSION = 3

_FIELD = re.compile(r"(optional |repeated )?(\w+) (\w+) = (\d+);")


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


class Schema:
    """The messages of a .proto file: enough of the language for ours."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"//[^\n]*", "", file.read())
        self.messages = {}
        for name, body in re.findall(r"message (\w+) \{(.*?)\n\}", text, re.S):
            self.messages[name] = {field: (kind, int(number), bool(label and label.startswith("repeated")))
                                   for label, kind, field, number in _FIELD.findall(body)}

    def payloads(self):
        """(field of Message, name of its message) of every kind of message between peers."""
        return [(field, kind) for field, (kind, _, _) in self.messages["Message"].items() if kind in self.messages]

    def encode(self, name, values):
        out = b""
        for field, value in values.items():
            kind, number, repeated = self.messages[name][field]
            for one in value if repeated else [value]:
                out += self._one(kind, number, one)
        return out

    def _one(self, kind, number, value):
        if kind in self.messages:
            body = self.encode(kind, value)
            return varint(number << 3 | 2) + varint(len(body)) + body
        if kind == "bytes":
            body = value.encode() if isinstance(value, str) else value
            return varint(number << 3 | 2) + varint(len(body)) + body
        if kind == "fixed64":
            return varint(number << 3 | 1) + struct.pack("<Q", value & (1 << 64) - 1)
        return varint(number << 3) + varint(int(value))


def frame(kind, body, payload=b"", version=HANDSHAKE_VERSION):
    return header(version=version, kind=kind, body=body + payload, protobuf_bytes=len(body),
                  payload_bytes=len(payload)) + body + payload


class Forger:
    """Speaks in the name of a node: `status` is that of a member, which says what everybody may know."""

    def __init__(self, schema, status, cluster_id):
        self.schema = schema
        self.status = status
        self.cluster_id = cluster_id

    def hello(self, sender, target, **changes):
        member = next((m for m in self.status["members"] if m["id"] == sender), None)
        uuid = int(member["uuid"], 16) if member and member.get("uuid") else 0x1234
        values = {"version_min": MESSAGE_VERSION, "version_max": MESSAGE_VERSION,
                  "cluster_id": self.cluster_id, "from": sender, "to": target,
                  "uuid_high": uuid >> 64, "uuid_low": uuid & (1 << 64) - 1, "incarnation": 1000, "process": 4711,
                  "purpose": 0, "address": "127.0.0.1:1"}
        values.update(changes)
        return frame(HELLO, self.schema.encode("Hello", values))

    def refusal(self, code):
        return frame(REFUSAL, self.schema.encode("Refusal", {"code": code, "reason": "forged", "version_min": 3,
                                                             "version_max": 3}))

    def message(self, field, values, payload=b"", group=1):
        body = self.schema.encode("Message", {"group": group, field: values})
        return frame(MESSAGE, body, payload, MESSAGE_VERSION)
