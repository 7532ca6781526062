// What a read of many keys is given: enough to answer it on another thread than its connection's.
#pragma once

#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/server/users/rights.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::server {

/// Words of a command. A read with more of them is *long*, as every scan is: it costs a
/// connection's thread more than a turn, so it is answered on the thread for such things.
inline constexpr std::size_t kShortReadWords = 64;

/// Whether a read (`spec.effect` is `read`) is long.
inline bool is_long_read(const CommandSpec& spec, std::size_t words) {
  const bool is_dear = spec.scan != nullptr || spec.form == ReplyForm::common_part;
  return is_dear || (spec.make != nullptr && words > kShortReadWords);
}
/// Whether it is a WATCH that is made in parts, in several turns: what it finds belongs to the
/// session, so no other thread can make it.
inline bool is_long_watch(const CommandSpec& spec, std::size_t words) {
  return spec.group == CommandGroup::transactions && words > kShortReadWords;
}

/// One thread at a time. What it refers to may be used on any thread and outlives it.
class StoreReader {
 public:
  StoreReader(const ServedGroups& served, const ServedGroup& of_keys, ServerState& shared_state,
              Protocol dialect)
      : groups(served),
        group(of_keys),
        state(shared_state),
        protocol(dialect),
        routes_version(served.routes_version()) {
    const kv::Slots& slots = group.store.slots();
    if (slots.changes() != kv::Slots::kNoChanges) slots_ = slots.list();
  }

  /// Appends the reply of a read without `run`, when it may be made.
  void answer(const CommandSpec& spec, const Arguments& args, std::string& out);
  /// As Session::refuse(), but the session counts it.
  void refuse(std::string& out, std::string_view text) {
    refused_ = true;
    append_error(out, text);
  }
  bool refused() const { return refused_; }
  /// Bytes of values that answer() has read, whether it shows them or not.
  std::size_t loaded() const { return loaded_; }
  /// Reads show only keys that these rights permit; null: none.
  void limit(std::shared_ptr<const Rights> rights) {
    limited_ = true;
    rights_ = std::move(rights);
  }
  /// Takes the steps of patterns off `budget`; when that is 0 afterwards the answer means nothing.
  bool may_show(std::string_view key, std::size_t& budget) const {
    if (slots_ != nullptr && !is_served(key)) return false;
    return !limited_ || (rights_ && rights_->may_use(key, kReads, budget));
  }

  const ServedGroups& groups;
  const ServedGroup& group;
  ServerState& state;
  const Protocol protocol;
  /// Before it looked at the group's slots.
  const std::uint64_t routes_version;

 private:
  bool is_served(std::string_view key) const {
    const auto at = slots_->find(kv::slot_of(key));
    return at == slots_->end() || kv::serves(&at->second);
  }

  std::shared_ptr<const kv::SlotMap> slots_;  ///< null: no slot of the group has ever moved
  bool refused_ = false;
  std::size_t loaded_ = 0;
  bool limited_ = false;
  std::shared_ptr<const Rights> rights_;
};

}  // namespace leasehold::server
