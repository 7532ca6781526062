#include <leasehold/wire/frame.h>

#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::wire {

namespace {

constexpr std::string_view kMagic = "LHP1";

/// Spare room left in a new buffer of copied bytes, so that a few heartbeats share one allocation.
constexpr std::size_t kFirstBlockBytes = 1024;

Error malformed_frame(std::string what) {
  return Error{ErrorCode::malformed, "malformed frame: " + std::move(what)};
}

bool kind_belongs(std::uint16_t version, std::uint8_t kind) {
  if (version == kHandshakeVersion) {
    return kind == static_cast<std::uint8_t>(FrameKind::hello) ||
           kind == static_cast<std::uint8_t>(FrameKind::refusal);
  }
  return kind == static_cast<std::uint8_t>(FrameKind::message);
}

}  // namespace

void append_header(const FrameHeader& header, std::string& out) {
  const std::size_t start = out.size();
  LittleWriter to(out);
  to.bytes(kMagic);
  to.u16(header.version);
  to.u8(static_cast<std::uint8_t>(header.kind));
  to.u8(0);
  to.u32(header.protobuf_bytes);
  to.u32(header.payload_bytes);
  to.u32(header.body_crc);
  to.u32(crc32c(std::string_view(out).substr(start)));
}

Result<FrameHeader> decode_header(std::string_view bytes) {
  LEASEHOLD_ASSERT(bytes.size() >= kFrameHeaderBytes);
  LittleReader in(bytes.substr(0, kFrameHeaderBytes));
  if (in.take(kMagic.size()) != kMagic) {
    return malformed_frame(
        "it does not begin with LHP1; is something else talking to the peer port?");
  }
  FrameHeader header;
  header.version = in.u16();
  const bool spoken = header.version >= kWireVersionMin && header.version <= kWireVersionMax;
  if (!spoken && header.version != kHandshakeVersion) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("frame of wire version {}; this build speaks {} to {}: run one "
                             "release on all nodes",
                             header.version, kWireVersionMin, kWireVersionMax)};
  }
  const std::uint8_t kind = in.u8();
  const std::uint8_t reserved = in.u8();
  header.protobuf_bytes = in.u32();
  header.payload_bytes = in.u32();
  header.body_crc = in.u32();
  if (in.u32() != crc32c(bytes.substr(0, kFrameHeaderBytes - 4))) {
    return malformed_frame("the header's checksum is wrong");
  }
  if (!kind_belongs(header.version, kind)) {
    return malformed_frame(fmt::format("kind {} is not one of version {}", kind, header.version));
  }
  header.kind = static_cast<FrameKind>(kind);
  if (reserved != 0) return malformed_frame("the reserved byte is not zero");
  return header;
}

std::string& SendBuffer::tail() {
  if (pieces_.empty() || !pieces_.back().shared.empty() ||
      pieces_.back().copied.size() >= kBlockBytes) {
    pieces_.emplace_back();
    pieces_.back().copied.reserve(kFirstBlockBytes);
  }
  return pieces_.back().copied;
}

void SendBuffer::append(const Bytes& payload) {
  if (payload.empty()) return;
  bytes_ += payload.size();
  if (payload.size() <= kCopyBytesMax) {
    tail().append(payload.view());
    return;
  }
  pieces_.emplace_back();
  pieces_.back().shared = payload;
}

std::size_t SendBuffer::front(std::string_view* views, std::size_t count) const {
  std::size_t used = 0;
  std::size_t skip = consumed_;
  for (const Piece& piece : pieces_) {
    if (used == count) break;
    const std::string_view rest = piece.view().substr(skip);
    skip = 0;
    if (!rest.empty()) views[used++] = rest;
  }
  return used;
}

void SendBuffer::consume(std::size_t bytes) {
  LEASEHOLD_ASSERT(bytes <= bytes_);
  bytes_ -= bytes;
  if (bytes_ == 0) {
    clear();
    return;
  }
  bytes += consumed_;
  while (bytes >= pieces_.front().view().size()) {
    bytes -= pieces_.front().view().size();
    pieces_.pop_front();
  }
  consumed_ = bytes;
}

void SendBuffer::clear() {
  bytes_ = 0;
  consumed_ = 0;
  // One small buffer is kept: an idle connection then allocates nothing per heartbeat.
  if (pieces_.size() == 1 && pieces_.front().shared.empty() &&
      pieces_.front().copied.capacity() <= kBlockBytes) {
    pieces_.front().copied.clear();
    return;
  }
  pieces_.clear();
}

void FrameReader::feed(std::string_view chunk) {
  LEASEHOLD_ASSERT(chunk_.empty());
  chunk_ = chunk;
}

Result<FrameHeader> FrameReader::checked_header(std::string_view bytes) const {
  Result<FrameHeader> header = decode_header(bytes);
  if (header.ok() && header.value().frame_bytes() > frame_bytes_max_) {
    return Error{ErrorCode::overloaded,
                 fmt::format("frame of {} bytes is above the limit of {}",
                             header.value().frame_bytes(), frame_bytes_max_)};
  }
  return header;
}

bool FrameReader::fill_partial(std::size_t size) {
  const std::size_t take = std::min(size - partial_.size(), chunk_.size());
  partial_.append(chunk_.substr(0, take));
  chunk_.remove_prefix(take);
  return partial_.size() == size;
}

Result<std::optional<Frame>> FrameReader::next() {
  current_ = Bytes();
  Frame frame;
  if (partial_.empty() && chunk_.size() >= kFrameHeaderBytes) {
    Result<FrameHeader> header = checked_header(chunk_);
    if (!header.ok()) return header.error();
    if (chunk_.size() >= header.value().frame_bytes()) {
      // The usual case: one read has brought the whole frame.
      frame.header = header.value();
      const std::string_view whole = chunk_.substr(0, frame.header.frame_bytes());
      chunk_.remove_prefix(whole.size());
      const std::string_view body = whole.substr(kFrameHeaderBytes);
      if (crc32c(body) != frame.header.body_crc) return malformed_frame("the checksum is wrong");
      frame.protobuf = body.substr(0, frame.header.protobuf_bytes);
      frame.payload = Bytes(body.substr(frame.header.protobuf_bytes));
      return std::optional<Frame>(std::move(frame));
    }
  }
  if (partial_.size() < kFrameHeaderBytes && !fill_partial(kFrameHeaderBytes)) {
    return std::optional<Frame>();
  }
  if (!partial_header_) {
    Result<FrameHeader> header = checked_header(partial_);
    if (!header.ok()) return header.error();
    partial_header_ = header.value();
    partial_.reserve(partial_header_->frame_bytes());
  }
  if (!fill_partial(partial_header_->frame_bytes())) return std::optional<Frame>();

  frame.header = *partial_header_;
  partial_header_.reset();
  current_ = Bytes(std::move(partial_));
  partial_ = std::string();
  const std::string_view body = current_.view().substr(kFrameHeaderBytes);
  if (crc32c(body) != frame.header.body_crc) return malformed_frame("the checksum is wrong");
  frame.protobuf = body.substr(0, frame.header.protobuf_bytes);
  frame.payload = current_.slice(kFrameHeaderBytes + frame.header.protobuf_bytes);
  return std::optional<Frame>(std::move(frame));
}

}  // namespace leasehold::wire
