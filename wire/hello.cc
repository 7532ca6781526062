#include <leasehold/wire/hello.h>

#include <leasehold/base/assert.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/crc32c.h>
#include <leasehold/wire/raft.pb.h>

#include <utility>

namespace leasehold::wire {

namespace {

void append_frame(FrameKind kind, const std::string& body, SendBuffer& out) {
  FrameHeader header;
  header.version = kHandshakeVersion;
  header.kind = kind;
  header.protobuf_bytes = static_cast<std::uint32_t>(body.size());
  header.body_crc = crc32c(body);
  LEASEHOLD_ASSERT(header.frame_bytes() <= kHandshakeFrameBytesMax);
  std::string& tail = out.tail();
  append_header(header, tail);
  tail.append(body);
  out.grow(header.frame_bytes());
}

Error malformed(std::string what) {
  return Error{ErrorCode::malformed, "malformed handshake: " + std::move(what)};
}

std::string printable(std::string text) {
  if (text.size() > kReasonBytesMax) text.resize(kReasonBytesMax);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

RefusalCode known_code(std::uint32_t code) {
  if (code < static_cast<std::uint32_t>(RefusalCode::version) ||
      code > static_cast<std::uint32_t>(RefusalCode::too_many)) {
    return RefusalCode::refused_by_node;
  }
  return static_cast<RefusalCode>(code);
}

template <class Form>
bool parse(const Frame& frame, Form& form) {
  return frame.payload.empty() && frame.protobuf.size() <= kHandshakeFrameBytesMax &&
         form.ParseFromArray(frame.protobuf.data(), static_cast<int>(frame.protobuf.size()));
}

}  // namespace

void encode_hello(const Hello& hello, SendBuffer& out) {
  pb::Hello form;
  form.set_version_min(hello.versions.min);
  form.set_version_max(hello.versions.max);
  form.set_cluster_id(hello.cluster_id);
  form.set_from(hello.from.value());
  form.set_to(hello.to.value());
  form.set_uuid_high(hello.uuid.high);
  form.set_uuid_low(hello.uuid.low);
  form.set_incarnation(hello.incarnation.value());
  form.set_process(hello.process);
  form.set_purpose(static_cast<std::uint32_t>(hello.purpose));
  append_frame(FrameKind::hello, form.SerializeAsString(), out);
}

void encode_refusal(const Refusal& refusal, SendBuffer& out) {
  pb::Refusal form;
  form.set_code(static_cast<std::uint32_t>(refusal.code));
  form.set_reason(printable(refusal.reason));
  form.set_version_min(refusal.versions.min);
  form.set_version_max(refusal.versions.max);
  append_frame(FrameKind::refusal, form.SerializeAsString(), out);
}

Result<Hello> decode_hello(const Frame& frame) {
  LEASEHOLD_ASSERT(frame.header.kind == FrameKind::hello);
  pb::Hello form;
  if (!parse(frame, form)) return malformed("the hello does not parse");
  if (form.version_min() == 0 || form.version_min() > form.version_max()) {
    return malformed("the range of versions is empty");
  }
  if (form.cluster_id() == 0 || form.from() == 0 || form.to() == 0) {
    return malformed("the cluster id or a node id is zero");
  }
  if (form.uuid_high() == 0 && form.uuid_low() == 0) return malformed("the uuid is zero");
  if (form.incarnation() == 0 || form.incarnation() > kPositionMax) {
    return malformed("the incarnation is zero or out of range");
  }
  if (form.purpose() > static_cast<std::uint32_t>(Purpose::snapshots)) {
    return malformed("the purpose of the connection is not known");
  }
  Hello hello;
  hello.versions = VersionRange{form.version_min(), form.version_max()};
  hello.cluster_id = form.cluster_id();
  hello.from = raft::NodeId(form.from());
  hello.to = raft::NodeId(form.to());
  hello.uuid = raft::Uuid{form.uuid_high(), form.uuid_low()};
  hello.incarnation = raft::Incarnation(form.incarnation());
  hello.process = form.process();
  hello.purpose = static_cast<Purpose>(form.purpose());
  return hello;
}

Result<Refusal> decode_refusal(const Frame& frame) {
  LEASEHOLD_ASSERT(frame.header.kind == FrameKind::refusal);
  pb::Refusal form;
  if (!parse(frame, form)) return malformed("the refusal does not parse");
  return Refusal{known_code(form.code()), printable(form.reason()),
                 VersionRange{form.version_min(), form.version_max()}};
}

}  // namespace leasehold::wire
