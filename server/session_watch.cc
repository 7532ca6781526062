#include <leasehold/server/front/duration.h>
#include <leasehold/server/session_watch.h>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

constexpr lease::Duration kLookPauseMax = std::chrono::seconds(5);
/// Sessions that are proposed at once. The others are due at the next look as well.
constexpr std::size_t kProposedMax = 256;

}  // namespace

SessionWatch::SessionWatch(node::Group& node, const kv::Store& store, lease::Duration idle_max,
                           lease::Duration timeout)
    : node_(node),
      store_(store),
      idle_max_(idle_max),
      rounds_(node, timeout),
      expiry_(idle_max),
      next_(node.clock().now().promise) {}

void SessionWatch::look() {
  const raft::PromiseInstant now = node_.clock().now().promise;
  if (now < next_) return;
  next_ = now + std::min(idle_max_ / 8, kLookPauseMax);
  const replica::LeaseLook lease = node_.lease_view().look(node_.clock());
  std::optional<raft::Term> leads_in;
  std::vector<replica::SessionTable::Session> sessions;
  if (lease.valid()) {
    auto listed = store_.sessions();
    if (!listed) return;  // the node is about to stop
    leads_in = lease.state.term;
    sessions = std::move(listed).value();
  }
  open_.store(sessions.size(), std::memory_order_relaxed);
  propose(expiry_.look(now, leads_in, sessions));
}

void SessionWatch::propose(const std::vector<replica::SessionExpiry::Idle>& due) {
  std::vector<Bytes> commands;
  for (const replica::SessionExpiry::Idle& idle : due) {
    if (commands.size() == kProposedMax) break;
    auto command = kv::encode_command(kv::ExpireSession{idle.id, idle.activity});
    if (command) commands.push_back(std::move(command).value());
  }
  rounds_.propose(std::move(commands), [idle_max = idle_max_](std::size_t ended) {
    spdlog::info("{} session{} ended: idle for {}", ended, ended == 1 ? "" : "s",
                 format_duration(idle_max));
  });
}

}  // namespace leasehold::server
