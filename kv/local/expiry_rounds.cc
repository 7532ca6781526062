#include <leasehold/kv/command.h>
#include <leasehold/kv/local/expiry_rounds.h>

#include <atomic>
#include <utility>

namespace leasehold::kv {

/// Ends when the last of its proposals does.
struct ExpiryRounds::Round {
  explicit Round(Told when_done) : told(std::move(when_done)) {}
  ~Round() {
    if (const std::size_t count = ended.load(); count > 0) told(count);
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  const Told told;
  std::atomic<std::size_t> ended{0};
};

void ExpiryRounds::propose(std::vector<Bytes> commands, Told told) {
  if (commands.empty() || under_way()) return;
  const auto round = std::make_shared<Round>(std::move(told));
  round_ = round;
  std::vector<node::Proposal> batch;
  batch.reserve(commands.size());
  for (Bytes& command : commands) {
    batch.push_back({std::move(command), [round](const replica::ProposeResult& result) {
                       if (result.status != replica::ProposeStatus::committed) return;
                       const auto reply = kv::decode_reply(result.result);
                       if (!reply) return;
                       const auto* count = std::get_if<kv::Integer>(&reply.value());
                       if (count == nullptr || count->value < 0) return;
                       round->ended += static_cast<std::size_t>(count->value);
                     }});
  }
  node_.propose_batch(std::move(batch), timeout_);
}

}  // namespace leasehold::kv
