// The commands that wait for their result, each one record.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/calls.h>
#include <leasehold/replica/span.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace leasehold::replica {

class ProposalList;

/// A command, or a read through the log, from its call to its result.
///
/// Invariant: it is in one ProposalTable, and in at most one list besides: the list of its place.
/// It is in no list when it ends.
struct Proposal {
  enum class Place : std::uint8_t { held, queued, appended, forwarded };

  Proposal() = default;
  ~Proposal();
  Proposal(const Proposal&) = delete;
  Proposal& operator=(const Proposal&) = delete;

  std::uint64_t sequence = 0;     ///< fixed while it is in a table
  raft::PromiseInstant deadline;  ///< fixed while it is in a table
  /// Empty: the applier has taken it. See Callers.
  ProposeCompletion done;

  SpanPointer span;  ///< null as a rule
  Bytes command;
  CallGroup group;
  bool is_read = false;
  bool repeatable = false;
  raft::ExpectedLeader expected;  ///< of each leadership that it is sent in
  Place place = Place::held;
  raft::NodeId sent_to;            ///< forwarded: the receiver
  raft::Term sent_in;              ///< forwarded or appended: in which term
  raft::PromiseInstant resend_at;  ///< forwarded: when it may be sent again
  bool hidden = false;       ///< it may be among the entries that a snapshot took the place of
  bool may_be_done = false;  ///< it was sent again without a proof

 private:
  friend class ProposalList;
  friend class ProposalTable;
  ProposalList* list_ = nullptr;
  Proposal* before_ = nullptr;
  Proposal* behind_ = nullptr;
  std::uint64_t key_ = 0;
  std::unique_ptr<Proposal> lower_;
  std::unique_ptr<Proposal> higher_;
};

/// Proposals in the order in which they came. Owns none.
class ProposalList {
 public:
  ProposalList() = default;
  ~ProposalList() { clear(); }
  ProposalList(const ProposalList&) = delete;
  ProposalList& operator=(const ProposalList&) = delete;

  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  Proposal& front() { return *first_; }
  const Proposal& front() const { return *first_; }
  /// `proposal` is in no list.
  void push_back(Proposal& proposal);
  /// Out of the list that it is in, if any.
  static void leave(Proposal& proposal);
  void clear() {
    while (!empty()) leave(front());
  }

 private:
  Proposal* first_ = nullptr;
  Proposal* last_ = nullptr;
  std::size_t size_ = 0;
};

/// Owns the proposals. Finds one by its sequence, and the one with the earliest deadline, without a
/// second index: the tree is a search tree by one and a heap by the other (a treap).
///
/// The search tree is by the mixed bits of the sequences, which know nothing of the deadlines. So
/// the expected depth is logarithmic, whatever the deadlines are; so is the cost of each change.
class ProposalTable {
 public:
  bool empty() const { return root_ == nullptr; }
  std::size_t size() const { return size_; }
  /// None: nullptr.
  Proposal* find(std::uint64_t sequence) const;
  /// Of equal deadlines the lowest sequence. None: nullptr.
  Proposal* earliest() const { return root_.get(); }
  /// Those that `wanted` is true of, by sequence. Visits all.
  template <class Wanted>
  std::vector<Proposal*> select(Wanted wanted) const {
    std::vector<Proposal*> found;
    std::vector<Proposal*> ahead;
    if (root_ != nullptr) ahead.push_back(root_.get());
    while (!ahead.empty()) {
      Proposal* at = ahead.back();
      ahead.pop_back();
      if (wanted(*at)) found.push_back(at);
      if (at->lower_ != nullptr) ahead.push_back(at->lower_.get());
      if (at->higher_ != nullptr) ahead.push_back(at->higher_.get());
    }
    std::sort(found.begin(), found.end(),
              [](const Proposal* a, const Proposal* b) { return a->sequence < b->sequence; });
    return found;
  }

  /// No proposal of the table has its sequence.
  Proposal& insert(std::unique_ptr<Proposal> proposal);
  std::unique_ptr<Proposal> erase(Proposal& proposal);
  /// Longest way from the root to a proposal. Visits all.
  std::size_t depth() const;

 private:
  static bool earlier(const Proposal& a, const Proposal& b) {
    if (a.deadline != b.deadline) return a.deadline < b.deadline;
    return a.sequence < b.sequence;
  }

  /// Invariant: key_ is higher than all keys in lower_, and lower than all in higher_; and no
  /// deadline below a proposal is earlier than its own.
  std::unique_ptr<Proposal> root_;
  std::size_t size_ = 0;
};

}  // namespace leasehold::replica
