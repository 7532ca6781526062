// The frame: what every run of bytes between two peers looks like.
//
//   offset  size  field (integers little-endian)
//        0     4  magic "LHP1"
//        4     2  version: 0 for the handshake, else the wire version both sides agreed on
//        6     1  kind
//        7     1  zero
//        8     4  bytes of the protobuf part
//       12     4  bytes of the payload part
//       16     4  CRC32C of both parts
//       20     4  CRC32C of the 20 bytes before
//       24        the protobuf part, then the payload part
//
// The header has a checksum of its own, so that a length is trusted only when it is what the sender
// wrote. Magic and version never change their place. The page for people is docs/wire.md.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::wire {

/// The versions of the message format that this build speaks.
inline constexpr std::uint16_t kWireVersionMin = 3;
inline constexpr std::uint16_t kWireVersionMax = 4;
/// The first one with chunks of snapshots; a peer that does not speak it gets none.
inline constexpr std::uint16_t kSnapshotVersion = 2;
/// The first one with the settings of a group: rounds carry the drift that the sender's lease
/// allows, and a group is formed with settings.
inline constexpr std::uint16_t kSettingsVersion = 4;
/// Frames of the handshake carry this one; every build reads it.
inline constexpr std::uint16_t kHandshakeVersion = 0;

/// Pinned. The first two belong to version 0, the third to the versions of messages.
enum class FrameKind : std::uint8_t { hello = 1, refusal = 2, message = 3 };

inline constexpr std::size_t kFrameHeaderBytes = 24;

struct FrameHeader {
  std::uint16_t version = 0;
  FrameKind kind = FrameKind::message;
  std::uint32_t protobuf_bytes = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t body_crc = 0;

  /// Of the whole frame.
  std::size_t frame_bytes() const {
    return kFrameHeaderBytes + std::size_t{protobuf_bytes} + payload_bytes;
  }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

/// The 24 bytes of `header`, appended to `out`.
void append_header(const FrameHeader& header, std::string& out);

/// Reads the first 24 of `bytes`, which the caller has. Errors: unsupported_format with both
/// version numbers; malformed: magic, kind, reserved byte, checksum.
Result<FrameHeader> decode_header(std::string_view bytes);

/// Encoded frames on their way to a socket: a list of pieces for gathered writes. Large payloads
/// are pieces that share the allocation of their entry; everything small is copied into one buffer,
/// where a copy is cheaper than another piece.
class SendBuffer {
 public:
  /// Payloads up to this size are copied.
  static constexpr std::size_t kCopyBytesMax = 1024;
  /// A buffer of copied bytes takes no more once it has reached this size.
  static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

  /// The buffer to append copied bytes to; then grow() records how many.
  std::string& tail();
  void grow(std::size_t bytes) { bytes_ += bytes; }
  void append(const Bytes& payload);

  std::size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  /// Writes up to `count` views of what comes next to `views`; returns how many. They stay valid
  /// until the buffer changes.
  std::size_t front(std::string_view* views, std::size_t count) const;
  /// Drops the first `bytes` bytes.
  void consume(std::size_t bytes);
  void clear();

 private:
  struct Piece {
    std::string copied;
    Bytes shared;
    std::string_view view() const {
      return shared.empty() ? std::string_view(copied) : shared.view();
    }
  };
  std::deque<Piece> pieces_;
  /// Invariant: less than the first piece, or zero.
  std::size_t consumed_ = 0;
  std::size_t bytes_ = 0;
};

/// A frame whose lengths and checksums are right; nothing else has been checked.
struct Frame {
  FrameHeader header;
  std::string_view protobuf;  ///< valid until the reader is used again
  Bytes payload;
};

/// Cuts a byte stream into frames. Holds at most one incomplete frame, and never reserves memory
/// for a frame above the limit.
class FrameReader {
 public:
  explicit FrameReader(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}
  void set_frame_bytes_max(std::size_t limit) { frame_bytes_max_ = limit; }

  /// Gives the reader the next bytes. They must stay valid until next() has returned none (or an
  /// error), which must happen before the next feed().
  void feed(std::string_view chunk);
  /// The next complete frame; none: more bytes are needed. After an error the stream is lost.
  /// Errors: malformed, unsupported_format, overloaded (a frame above the limit).
  Result<std::optional<Frame>> next();

  /// Bytes that wait for the rest of their frame.
  std::size_t held_bytes() const { return partial_.size(); }

 private:
  Result<FrameHeader> checked_header(std::string_view bytes) const;
  /// Moves bytes of the chunk to the incomplete frame until that has `size` of them. Whether it
  /// has.
  bool fill_partial(std::size_t size);

  std::size_t frame_bytes_max_;
  std::string_view chunk_;
  /// The beginning of a frame whose end was not in the chunk.
  std::string partial_;
  /// Of `partial_`, once it is long enough.
  std::optional<FrameHeader> partial_header_;
  /// The last frame handed out, if it was put together in `partial_`.
  Bytes current_;
};

}  // namespace leasehold::wire
