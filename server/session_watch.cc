#include <leasehold/server/duration.h>
#include <leasehold/server/session_watch.h>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
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

/// Ends when the last of its proposals does.
struct SessionWatch::Round {
  explicit Round(lease::Duration idle) : idle_max(idle) {}
  ~Round() {
    if (const std::size_t count = expired.load(); count > 0) {
      spdlog::info("{} session{} ended: idle for {}", count, count == 1 ? "" : "s",
                   format_duration(idle_max));
    }
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  const lease::Duration idle_max;
  std::atomic<std::size_t> expired{0};
};

SessionWatch::SessionWatch(node::Node& node, const kv::Store& store, lease::Duration idle_max,
                           lease::Duration timeout)
    : node_(node),
      store_(store),
      idle_max_(idle_max),
      timeout_(timeout),
      expiry_(idle_max),
      next_(node.clock().now().promise) {}

void SessionWatch::look() {
  const raft::PromiseInstant now = node_.clock().now().promise;
  if (now < next_) return;
  next_ = now + std::min(idle_max_ / 8, kLookPauseMax);
  const node::LeaseLook lease = node_.lease_view().look(node_.clock());
  std::optional<raft::Term> leads_in;
  std::vector<node::SessionTable::Session> sessions;
  if (lease.readable_index()) {
    auto listed = store_.sessions();
    if (!listed) return;  // the node is about to stop
    leads_in = lease.state.term;
    sessions = std::move(listed).value();
  }
  propose(expiry_.look(now, leads_in, sessions));
}

void SessionWatch::propose(const std::vector<node::SessionExpiry::Idle>& due) {
  if (due.empty() || !under_way_.expired()) return;
  const auto round = std::make_shared<Round>(idle_max_);
  under_way_ = round;
  std::vector<node::Proposal> batch;
  for (const node::SessionExpiry::Idle& idle : due) {
    if (batch.size() == kProposedMax) break;
    auto command = kv::encode_command(kv::ExpireSession{idle.id, idle.activity});
    if (!command) continue;
    batch.push_back({std::move(command).value(), [round](const node::ProposeResult& result) {
                       if (result.status != node::ProposeStatus::committed) return;
                       const auto reply = kv::decode_reply(result.result);
                       if (!reply) return;
                       const auto* closed = std::get_if<kv::Integer>(&reply.value());
                       if (closed != nullptr && closed->value == 1) ++round->expired;
                     }});
  }
  node_.propose_batch(std::move(batch), timeout_);
}

}  // namespace leasehold::server
