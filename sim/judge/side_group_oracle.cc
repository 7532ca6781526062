#include <leasehold/sim/judge/side_group_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace leasehold::sim {

template <class See>
void SideGroupOracle::each_replica(raft::GroupId group, const See& see) const {
  for (const SimNode* node : ledger_.nodes()) {
    for (const auto& replica : node->side_groups()) {
      if (replica->group() == group) see(*node, *replica);
    }
  }
}

void SideGroupOracle::after_turn(const SideGroup& group) {
  Terms& committed = committed_[group.group()];
  check_log(group, committed);
  check_leases(group.group(), committed);
}

void SideGroupOracle::check_log(const SideGroup& group, Terms& committed) {
  const raft::Core* const core = group.core();
  if (core == nullptr) return;
  const auto differs = [this, &group](std::uint64_t index, const std::string& what) {
    world_.fail("side_log",
                fmt::format("group {}: entry {} is {}", group.group().value(), index, what));
  };
  // By Log Matching, the newest shows all.
  const std::uint64_t known =
      std::min<std::uint64_t>(core->commit_index().value(), committed.size());
  if (known > 0 && core->log().term_at(raft::Index(known)) != committed[known - 1]) {
    differs(known, "committed with two terms");
  }
  for (std::uint64_t index = known + 1; index <= core->commit_index().value(); ++index) {
    committed.push_back(core->log().term_at(raft::Index(index)).value());
  }
  if (core->role() != raft::Role::leader || committed.empty()) return;
  if (core->term() < committed.back()) return;  // deposed, and does not know it
  if (core->log().term_at(raft::Index(committed.size())) != committed.back()) {
    differs(committed.size(), "committed, and a later leader lacks it");
  }
}

void SideGroupOracle::check_leases(raft::GroupId group, const Terms& committed) {
  const SimNode* holder = nullptr;
  each_replica(group, [&](const SimNode& node, const SideGroup& replica) {
    if (!node.up() || node.clock().holder_now() >= replica.published().end) return;
    const raft::Term term = replica.published().term;
    if (holder != nullptr) {
      world_.fail("side_two_leases", fmt::format("group {}: {} and {} both hold a valid lease",
                                                 group.value(), name(*holder), name(node)));
    }
    holder = &node;
    if (!committed.empty() && committed.back() > term) {
      world_.fail(
          "side_two_leases",
          fmt::format("group {}: {} holds a valid lease of {}, but {} has committed an "
                      "entry",
                      group.value(), name(node), term_text(term), term_text(committed.back())));
    }
  });
}

void SideGroupOracle::check_recovered() {
  for (std::uint64_t n = 1; n <= world_.plan.beats.side_groups; ++n) {
    const raft::GroupId group(kFirstGroup.value() + n);
    bool led = false;
    each_replica(group, [&led](const SimNode&, const SideGroup& replica) {
      const raft::Core* const core = replica.core();
      if (core == nullptr || core->role() != raft::Role::leader) return;
      led = led || core->log().term_at(core->commit_index()) == core->term();
    });
    if (led) continue;
    world_.fail("liveness", fmt::format("after the faults have ended, group {} has no leader that "
                                        "has committed an entry",
                                        group.value()));
  }
}

}  // namespace leasehold::sim
