#include <leasehold/base/assert.h>
#include <leasehold/replica/proposal_table.h>
#include <leasehold/replica/request_numbers.h>

#include <utility>

namespace leasehold::replica {

Proposal::~Proposal() {
  LEASEHOLD_ASSERT(list_ == nullptr);
}

void ProposalList::push_back(Proposal& proposal) {
  LEASEHOLD_ASSERT(proposal.list_ == nullptr);
  proposal.list_ = this;
  proposal.before_ = last_;
  (last_ == nullptr ? first_ : last_->behind_) = &proposal;
  last_ = &proposal;
  ++size_;
}

void ProposalList::leave(Proposal& proposal) {
  ProposalList* list = std::exchange(proposal.list_, nullptr);
  if (list == nullptr) return;
  Proposal* before = std::exchange(proposal.before_, nullptr);
  Proposal* behind = std::exchange(proposal.behind_, nullptr);
  (before == nullptr ? list->first_ : before->behind_) = behind;
  (behind == nullptr ? list->last_ : behind->before_) = before;
  --list->size_;
}

Proposal* ProposalTable::find(std::uint64_t sequence) const {
  const std::uint64_t key = mix_bits(sequence);
  Proposal* at = root_.get();
  while (at != nullptr && at->key_ != key) at = (key < at->key_ ? at->lower_ : at->higher_).get();
  return at;
}

// Down to the first with a later deadline, whose place it takes; what was below that place is split
// by key into its two sides.
Proposal& ProposalTable::insert(std::unique_ptr<Proposal> proposal) {
  Proposal& added = *proposal;
  added.key_ = mix_bits(added.sequence);
  std::unique_ptr<Proposal>* at = &root_;
  while (*at != nullptr && earlier(**at, added)) {
    at = added.key_ < (*at)->key_ ? &(*at)->lower_ : &(*at)->higher_;
  }
  std::unique_ptr<Proposal> rest = std::exchange(*at, std::move(proposal));
  std::unique_ptr<Proposal>* lower = &added.lower_;
  std::unique_ptr<Proposal>* higher = &added.higher_;
  while (rest != nullptr) {
    LEASEHOLD_ASSERT(rest->key_ != added.key_);
    const bool is_lower = rest->key_ < added.key_;
    std::unique_ptr<Proposal>*& side = is_lower ? lower : higher;
    *side = std::move(rest);
    std::unique_ptr<Proposal>* cut = is_lower ? &(*side)->higher_ : &(*side)->lower_;
    rest = std::move(*cut);
    side = cut;
  }
  ++size_;
  return added;
}

// Its two sides are joined in its place: of the two roots the one with the earlier deadline is
// above.
std::unique_ptr<Proposal> ProposalTable::erase(Proposal& proposal) {
  std::unique_ptr<Proposal>* at = &root_;
  while (at->get() != &proposal) {
    LEASEHOLD_ASSERT(*at != nullptr);
    at = proposal.key_ < (*at)->key_ ? &(*at)->lower_ : &(*at)->higher_;
  }
  std::unique_ptr<Proposal> erased = std::move(*at);
  std::unique_ptr<Proposal> lower = std::move(erased->lower_);
  std::unique_ptr<Proposal> higher = std::move(erased->higher_);
  while (lower != nullptr && higher != nullptr) {
    const bool lower_above = earlier(*lower, *higher);
    std::unique_ptr<Proposal>& above = lower_above ? lower : higher;
    *at = std::move(above);
    std::unique_ptr<Proposal>* joint = lower_above ? &(*at)->higher_ : &(*at)->lower_;
    above = std::move(*joint);
    at = joint;
  }
  *at = std::move(lower != nullptr ? lower : higher);
  --size_;
  return erased;
}

std::size_t ProposalTable::depth() const {
  std::size_t depth = 0;
  std::vector<const Proposal*> level;
  if (root_ != nullptr) level.push_back(root_.get());
  for (; !level.empty(); ++depth) {
    std::vector<const Proposal*> next;
    for (const Proposal* at : level) {
      if (at->lower_ != nullptr) next.push_back(at->lower_.get());
      if (at->higher_ != nullptr) next.push_back(at->higher_.get());
    }
    level = std::move(next);
  }
  return depth;
}

}  // namespace leasehold::replica
