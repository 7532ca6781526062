// The keys and records of the durable log, and the only code that knows their bytes. Format:
// docs/formats/log.md.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/entry.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::storage {

/// The version of every record below, and of the folder as a whole.
inline constexpr std::uint8_t kLogFormat = 1;

/// "NAME has format 2, this build knows 1: use a newer build".
Error unsupported_format(std::string_view what, unsigned long found);

/// The kinds of record of one group. Pinned. Entries come first: then a flushed file, which holds
/// new entries and the newest state, overlaps few older files, and compaction stays cheap.
enum class RecordKind : std::uint8_t {
  entry = 1,
  confirmed = 2,  ///< the confirmed set of initial members
  base = 3,       ///< where the log begins; present once the group is formed
  state = 4,      ///< hard state and end of the log; part of every write
};

std::string identity_key();
/// The key of a record of which there is one per group.
std::string record_key(raft::GroupId group, RecordKind kind);
std::string entry_key(raft::GroupId group, raft::Index index);
/// The index in an entry's key. Errors: corrupted when it is no entry key of the group.
Result<raft::Index> decode_entry_key(raft::GroupId group, std::string_view key);

/// Whose database this is.
struct IdentityRecord {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;
  friend bool operator==(const IdentityRecord&, const IdentityRecord&) = default;
};

/// What must never be forgotten, and how much of the log must be there. Both in one record, so that
/// whatever shows one of them shows the other.
struct StateRecord {
  raft::HardState hard_state;
  raft::LogId last;
  friend bool operator==(const StateRecord&, const StateRecord&) = default;
};

struct BaseRecord {
  raft::LogId base;
  raft::Membership membership;
  friend bool operator==(const BaseRecord&, const BaseRecord&) = default;
};

/// An entry's record without its payload, which follows it. `previous_term` chains the entries: by
/// Log Matching, an entry that hangs on the right predecessor has the right log before it.
struct EntryHead {
  raft::Term term;
  raft::Term previous_term;
  raft::EntryKind kind = raft::EntryKind::command;
};
inline constexpr std::size_t kEntryHeadBytes = 18;

std::string encode_identity(const IdentityRecord& record);
std::string encode_state(const StateRecord& record);
std::string encode_confirmed(const raft::Membership& members);
std::string encode_base(const BaseRecord& record);
std::string encode_entry_head(const EntryHead& head);

// Each checks the format byte and every length and enumerator. Errors: unsupported_format,
// corrupted.

Result<IdentityRecord> decode_identity(std::string_view bytes);
Result<StateRecord> decode_state(std::string_view bytes);
Result<raft::Membership> decode_confirmed(std::string_view bytes);
Result<BaseRecord> decode_base(std::string_view bytes);
/// The payload is `bytes` from kEntryHeadBytes on.
Result<EntryHead> decode_entry_head(std::string_view bytes);

}  // namespace leasehold::storage
