// What the frames of a log say of one group, and the proof that nothing of it is missing.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/group_index.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/storage/shape.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace leasehold::storage {

struct LoadedGroup {
  Foundation foundation;
  Shape shape;
  std::vector<raft::MembershipAt> memberships;
  std::uint64_t payload_bytes = 0;  ///< of the entries of the log
  GroupIndex index;
};

/// Takes the sections of one group in the order in which they were written. Where the front of the
/// files is gone, what a section says of the entries before it is believed until later ones show
/// it: a base behind them, or copies that were made before the front went.
class GroupLoader {
 public:
  /// `floating`: frames in front of the first section are gone.
  explicit GroupLoader(bool floating) : floating_(floating) {}

  /// A section begins, which is not `removed`; its entries follow, and then end(). Errors, in this
  /// and the others: corrupted, unsupported_format (a membership's).
  Result<void> begin(const BatchBody& batch, std::uint64_t segment);
  Result<void> add(const EntryView& entry);
  Result<void> end();
  /// When there are no more.
  Result<LoadedGroup> finish(Holders& holders);

 private:
  /// Entries of one term that follow one another and stand in one segment.
  struct Run {
    raft::Term term;
    std::uint64_t segment = 0;
    std::vector<std::uint32_t> payload_bytes;  ///< of each entry
  };
  using Runs = std::map<raft::Index, Run>;

  Result<void> begin_append();
  Result<void> begin_moved();
  Result<void> lay(const Foundation& foundation);
  Result<void> cut(const raft::LogBase& base);
  Result<void> expect(raft::LogId id);
  void insert(const EntryView& entry);
  void truncate(raft::Index from);
  std::optional<raft::Term> term_at(raft::Index index) const;
  Runs::const_iterator run_of(raft::Index index) const;

  const bool floating_;
  /// Nothing in front of it is of the group: its log began, or begins again, with a section.
  bool whole_ = false;
  bool begun_ = false;
  Foundation foundation_;
  StateRecord state_;
  std::uint64_t state_segment_ = 0;
  std::uint64_t foundation_segment_ = 0;
  /// The end of the log. Its entries may be unknown.
  raft::Index last_;
  Runs runs_;
  std::map<raft::Index, raft::Membership> memberships_;
  /// What sections say of entries that are unknown so far.
  std::map<raft::Index, raft::Term> expected_;

  // Of the section that is being taken.
  BatchBody batch_;
  std::uint64_t segment_ = 0;
  raft::Index next_;
};

}  // namespace leasehold::storage
