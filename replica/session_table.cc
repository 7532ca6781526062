// The bytes of a session. All integers little-endian; the format is pinned
// (docs/formats/sessions.md).
//
//     format          1 byte   1
//     activity        8 bytes
//     answered below  8 bytes
//     count           4 bytes
//     count times:    sequence 8 bytes, length 4 bytes, the result; length 0: gone
//
// Of a session with an owner:
//
//     format  1 byte   2
//     owner   length 4 bytes, not 0, and its name; then as above from `activity` on
//
// Of a whole table:
//
//     format  1 byte   1
//     newest  8 bytes
//     count   4 bytes
//     count times: id 8 bytes, length 4 bytes, the session; in rising order of the ids
#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/replica/session_table.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace leasehold::replica {
namespace {

constexpr std::uint8_t kTableFormat = 1;
constexpr std::uint8_t kFormatWithOwner = 2;

void put_piece(LittleWriter& to, std::string_view piece) {
  LEASEHOLD_ASSERT(piece.size() <= std::numeric_limits<std::uint32_t>::max());
  to.sized(piece);
}

Error malformed(const char* what, const char* how) {
  return {ErrorCode::malformed, std::string(what) + ": " + how};
}

/// Takes the format byte from the front: one of those from kTableFormat to `newest`.
Result<std::uint8_t> take_format(const char* what, LittleReader& in, std::uint8_t newest) {
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed(what, "empty; expected at least its format");
  if (format >= kTableFormat && format <= newest) return format;
  return Error{ErrorCode::unsupported_format,
               std::string(what) + ": format " + std::to_string(format) +
                   ", this build knows format " + std::to_string(newest)};
}

}  // namespace

std::optional<SessionId> SessionTable::open(std::string_view owner, std::uint64_t above) {
  LEASEHOLD_ASSERT(owner.size() <= kSessionOwnerBytesMax);
  if (sessions_.size() >= kSessionsMax || size_of(owner) >= kSessionsOfOwnerMax)
    return std::nullopt;
  newest_ = SessionId(std::max(newest_.value(), above) + 1);
  Entry entry;
  entry.owner = owner;
  if (!owner.empty()) ++of_owner_[entry.owner];
  sessions_.emplace_hint(sessions_.end(), newest_, std::move(entry));
  return newest_;
}

bool SessionTable::is_for(SessionId id, std::string_view user) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  return found->second.owner.empty() || found->second.owner == user;
}

std::size_t SessionTable::size_of(std::string_view owner) const {
  const auto owned = of_owner_.find(owner);
  return owned == of_owner_.end() ? 0 : owned->second;
}

std::vector<SessionId> SessionTable::of(std::string_view owner) const {
  std::vector<SessionId> out;
  if (size_of(owner) == 0) return out;
  for (const auto& [id, entry] : sessions_) {
    if (entry.owner == owner) out.push_back(id);
  }
  return out;
}

bool SessionTable::close(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  const auto owned = of_owner_.find(found->second.owner);
  if (owned != of_owner_.end() && --owned->second == 0) of_owner_.erase(owned);
  sessions_.erase(found);
  return true;
}

bool SessionTable::touch(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  ++found->second.activity;
  return true;
}

bool SessionTable::expire(SessionId id, std::uint64_t activity) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.activity != activity) return false;
  return close(id);
}

SessionTable::Begun SessionTable::begin(SessionId id, std::uint64_t sequence,
                                        std::uint64_t answered_below) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {Verdict::no_session, {}};
  Entry& entry = found->second;
  ++entry.activity;
  // A repeated sequence counts as not answered, even if the client says otherwise.
  entry.answered_below = std::max(entry.answered_below, std::min(answered_below, sequence));
  while (!entry.results.empty() && entry.results.begin()->first < entry.answered_below) {
    entry.bytes -= entry.results.begin()->second.size();
    entry.results.erase(entry.results.begin());
  }
  if (sequence < entry.answered_below) return {Verdict::answered, {}};
  if (sequence - entry.answered_below >= kSessionWindow) return {Verdict::too_far_ahead, {}};
  const auto known = entry.results.find(sequence);
  if (known == entry.results.end()) return {Verdict::execute, {}};
  if (known->second.empty()) return {Verdict::result_gone, {}};
  return {Verdict::repeated, known->second};
}

void SessionTable::finish(SessionId id, std::uint64_t sequence, Bytes result) {
  LEASEHOLD_ASSERT(!result.empty());
  const auto found = sessions_.find(id);
  LEASEHOLD_ASSERT(found != sessions_.end());
  Entry& entry = found->second;
  // It would evict all others, and then itself.
  if (result.size() > kSessionResultBytesMax) result = Bytes();
  entry.bytes += result.size();
  const bool added = entry.results.emplace(sequence, std::move(result)).second;
  LEASEHOLD_ASSERT(added);
  for (auto& [number, kept] : entry.results) {
    if (entry.bytes <= kSessionResultBytesMax) break;
    entry.bytes -= kept.size();
    kept = Bytes();
  }
}

std::vector<SessionTable::Session> SessionTable::list() const {
  std::vector<Session> out;
  out.reserve(sessions_.size());
  for (const auto& [id, entry] : sessions_) {
    out.push_back({id, entry.activity, entry.results.size(), entry.owner});
  }
  return out;
}

std::optional<Bytes> SessionTable::encode(SessionId id) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  const Entry& entry = found->second;
  std::string out;
  LittleWriter to(out);
  to.u8(entry.owner.empty() ? kTableFormat : kFormatWithOwner);
  if (!entry.owner.empty()) put_piece(to, entry.owner);
  to.u64(entry.activity);
  to.u64(entry.answered_below);
  to.u32(static_cast<std::uint32_t>(entry.results.size()));
  for (const auto& [sequence, result] : entry.results) {
    to.u64(sequence);
    put_piece(to, result.view());
  }
  return Bytes(std::move(out));
}

Result<void> SessionTable::restore(SessionId id, std::string_view bytes) {
  constexpr const char* kWhat = "session";
  LittleReader in(bytes);
  const auto format = take_format(kWhat, in, kFormatWithOwner);
  if (!format) return format.error();
  Entry entry;
  if (format.value() == kFormatWithOwner) {
    entry.owner = in.sized();
    if (in.ok() && (entry.owner.empty() || entry.owner.size() > kSessionOwnerBytesMax))
      return malformed(kWhat, "its owner's name is empty or too long");
  }
  entry.activity = in.u64();
  entry.answered_below = in.u64();
  const std::uint32_t count = in.u32();
  if (!in.ok()) return malformed(kWhat, "shorter than its header");
  if (entry.answered_below == 0) return malformed(kWhat, "sequences begin at 1");
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::uint64_t sequence = in.u64();
    const std::string_view result = in.sized();
    const bool rises = entry.results.empty() || sequence > entry.results.rbegin()->first;
    if (!in.ok()) break;
    if (!rises || sequence < entry.answered_below ||
        sequence - entry.answered_below >= kSessionWindow) {
      return malformed(kWhat, "a sequence is out of order or outside of the window");
    }
    entry.bytes += result.size();
    entry.results.emplace_hint(entry.results.end(), sequence, Bytes(result));
  }
  if (!in.ok()) return malformed(kWhat, "shorter than it says");
  if (!in.at_end()) return malformed(kWhat, "longer than it says");
  if (entry.bytes > kSessionResultBytesMax) return malformed(kWhat, "keeps more than it may");
  if (id == SessionId(0) || id > newest_) return malformed(kWhat, "its id was never given");
  if (sessions_.count(id) != 0) return malformed(kWhat, "named twice");
  if (sessions_.size() >= kSessionsMax) return malformed(kWhat, "more are open than may be");
  if (!entry.owner.empty()) ++of_owner_[entry.owner];
  sessions_.emplace(id, std::move(entry));
  return {};
}

Bytes SessionTable::encode_all() const {
  std::string out;
  LittleWriter to(out);
  to.u8(kTableFormat);
  to.u64(newest_.value());
  to.u32(static_cast<std::uint32_t>(sessions_.size()));
  for (const auto& [id, entry] : sessions_) {
    to.u64(id.value());
    put_piece(to, encode(id)->view());
  }
  return Bytes(std::move(out));
}

Result<SessionTable> SessionTable::decode_all(std::string_view bytes) {
  constexpr const char* kWhat = "session table";
  LittleReader in(bytes);
  if (auto known = take_format(kWhat, in, kTableFormat); !known) return known.error();
  SessionTable table;
  table.newest_ = SessionId(in.u64());
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const SessionId id(in.u64());
    const std::string_view session = in.sized();
    if (!in.ok()) break;
    if (!table.sessions_.empty() && id <= table.sessions_.rbegin()->first) {
      return malformed(kWhat, "an id is out of order");
    }
    if (auto restored = table.restore(id, session); !restored) return restored.error();
  }
  if (!in.ok()) return malformed(kWhat, "shorter than it says");
  if (!in.at_end()) return malformed(kWhat, "longer than it says");
  return table;
}

}  // namespace leasehold::replica
