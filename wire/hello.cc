#include <leasehold/wire/hello.h>

#include <leasehold/base/assert.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/crc32c.h>
#include <leasehold/wire/raft.pb.h>

#include <algorithm>
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

Error malformed_hello(std::string what) {
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
      code > static_cast<std::uint32_t>(RefusalCode::given_up)) {
    return RefusalCode::refused_by_node;
  }
  return static_cast<RefusalCode>(code);
}

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
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
  form.set_cluster(hello.cluster);
  form.set_address(hello.address);
  form.set_membership_term(hello.membership.term.value());
  form.set_membership_index(hello.membership.index.value());
  form.set_witness(hello.witness);
  form.set_place(hello.place);
  form.set_end_commitment(hello.end_commitment);
  append_frame(FrameKind::hello, form.SerializeAsString(), out);
}

void encode_refusal(const Refusal& refusal, SendBuffer& out) {
  pb::Refusal form;
  form.set_code(static_cast<std::uint32_t>(refusal.code));
  form.set_reason(printable(refusal.reason));
  form.set_version_min(refusal.versions.min);
  form.set_version_max(refusal.versions.max);
  form.set_membership_term(refusal.membership.term.value());
  form.set_membership_index(refusal.membership.index.value());
  append_frame(FrameKind::refusal, form.SerializeAsString(), out);
}

Result<Hello> decode_hello(const Frame& frame) {
  LEASEHOLD_ASSERT(frame.header.kind == FrameKind::hello);
  pb::Hello form;
  if (!parse(frame, form)) return malformed_hello("the hello does not parse");
  if (form.version_min() == 0 || form.version_min() > form.version_max()) {
    return malformed_hello("the range of versions is empty");
  }
  if (form.purpose() > static_cast<std::uint32_t>(Purpose::introduction)) {
    return malformed_hello("the purpose of the connection is not known");
  }
  const bool known = form.purpose() != static_cast<std::uint32_t>(Purpose::introduction);
  if (form.from() == 0 || (known && (form.cluster_id() == 0 || form.to() == 0))) {
    return malformed_hello("the cluster id or a node id is zero");
  }
  if (known && form.uuid_high() == 0 && form.uuid_low() == 0)
    return malformed_hello("the uuid is zero");
  if ((known && form.incarnation() == 0) || form.incarnation() > kPositionMax) {
    return malformed_hello("the incarnation is zero or out of range");
  }
  if (form.membership_term() > kPositionMax || form.membership_index() > kPositionMax) {
    return malformed_hello("the place of the membership is out of range");
  }
  if (form.cluster().size() > kClusterNameBytesMax ||
      form.address().size() > kHelloAddressBytesMax || !is_printable(form.address())) {
    return malformed_hello("the name of the cluster or the address is too long or not printable");
  }
  if (!form.end_commitment().empty() && form.end_commitment().size() != kCommitmentBytes) {
    return malformed_hello("the commitment to a notice is not a hash");
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
  hello.cluster = form.cluster();
  hello.address = form.address();
  hello.membership = {raft::Term(form.membership_term()), raft::Index(form.membership_index())};
  hello.witness = form.witness();
  hello.place = form.place();
  hello.end_commitment = form.end_commitment();
  return hello;
}

Result<Refusal> decode_refusal(const Frame& frame) {
  LEASEHOLD_ASSERT(frame.header.kind == FrameKind::refusal);
  pb::Refusal form;
  if (!parse(frame, form)) return malformed_hello("the refusal does not parse");
  return Refusal{
      known_code(form.code()), printable(form.reason()),
      VersionRange{form.version_min(), form.version_max()},
      raft::LogId{raft::Term(form.membership_term()), raft::Index(form.membership_index())}};
}

}  // namespace leasehold::wire
