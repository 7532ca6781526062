#include <leasehold/kv/command.h>
#include <leasehold/kv/command_level.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

namespace leasehold::kv {
namespace {

template <class C, class... Others>
constexpr bool kIsOneOf = (std::is_same_v<C, Others> || ...);

/// A release that adds a command adds it here.
struct LevelNeeded {
  template <class C>
  raft::FeatureLevel operator()(const C&) const {
    return kIsOneOf<C, WithNamedLease, RenewNamed, SetUser, DelUsers, ActAs, CompareState,
                    ReportState, LoadAtMost, BeginMove, CancelMove, FreezeMove, ExpectSlots,
                    ImportKeys, TakeSlots, LeaveSlots, DropKeys, ForgetSlots, RetryMove,
                    IncrByFloat, Copy, SetBit, GetBit, BitCount, Lcs>
               ? raft::kSettingsLevel
               : raft::kOldestLevel;
  }
  raft::FeatureLevel operator()(const Set& set) const { return with_end(set.end_ms); }
  raft::FeatureLevel operator()(const MSet& mset) const { return with_end(mset.end_ms); }
  raft::FeatureLevel operator()(const ExpireKey& expire) const { return with_end(expire.end_ms); }
  raft::FeatureLevel operator()(const Once& once) const { return level_needed(once.command); }
  raft::FeatureLevel operator()(const Transaction& transaction) const {
    raft::FeatureLevel needed = raft::kOldestLevel;
    for (const Operation& operation : transaction.operations) {
      needed = std::max(needed, std::visit(*this, operation));
    }
    return needed;
  }

 private:
  static raft::FeatureLevel with_end(std::int64_t end_ms) {
    return end_ms != 0 ? raft::kSettingsLevel : raft::kOldestLevel;
  }
};

}  // namespace

raft::FeatureLevel level_needed(std::string_view command) {
  const auto decoded = decode_command(command);
  return decoded ? std::visit(LevelNeeded(), decoded.value()) : raft::kNewestLevel;
}

std::string refusal_below(std::string_view command, raft::FeatureLevel level) {
  if (level >= raft::kNewestLevel) return {};
  const raft::FeatureLevel needed = level_needed(command);
  if (needed <= level) return {};
  return fmt::format(
      "this command needs the group's level {}, and the group has level {}: a member may run a "
      "build that cannot read it. Run this version on every member, then give the group its "
      "settings (leasehold settings set)",
      needed, level);
}

Result<Bytes> encode_for(const Command& command, raft::FeatureLevel level) {
  auto encoded = encode_command(command);
  if (!encoded) return encoded;
  std::string refusal = refusal_below(encoded.value().view(), level);
  if (!refusal.empty()) return Error{ErrorCode::invalid_argument, std::move(refusal)};
  return encoded;
}

}  // namespace leasehold::kv
