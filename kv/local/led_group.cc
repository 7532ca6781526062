#include <leasehold/kv/command_level.h>
#include <leasehold/kv/local/led_group.h>

#include <optional>
#include <utility>

namespace leasehold::kv {
namespace {

class ReplicaHere final : public LedGroup {
 public:
  ReplicaHere(node::Group& group, const Store& store, LeaseKeeper& keeper, lease::Duration timeout)
      : group_(group), store_(store), keeper_(keeper), timeout_(timeout) {}

  Result<Reply> execute(const Command& command) override {
    auto encoded = encode_for(command, group_.lease_view().level());
    if (!encoded) return encoded.error();
    const replica::ProposeResult done =
        group_.propose_and_wait(std::move(encoded).value(), timeout_);
    switch (done.status) {
      case replica::ProposeStatus::committed: return decode_reply(done.result);
      case replica::ProposeStatus::dropped:
        return Error{ErrorCode::unavailable, "the group takes no commands now"};
      case replica::ProposeStatus::unknown:
        return Error{ErrorCode::timed_out, "the group did not execute a command in time"};
    }
    return Error{ErrorCode::timed_out, "the group did not answer"};
  }
  Result<void> catch_up() override {
    const auto read = group_.read_point(raft::ReadMode::quorum, timeout_);
    if (read.index) return {};
    return Error{ErrorCode::unavailable, "the group cannot be read now"};
  }
  const Store& store() const override { return store_; }
  Result<std::optional<lease::Duration>> time_left(grant::LeaseId id) override {
    const auto left = keeper_.left(id);
    if (!left) return left.error();
    if (!left.value()) return std::optional<lease::Duration>();
    return std::optional(left.value()->left);
  }
  bool leads() const override { return group_.lease_view().look(group_.clock()).valid(); }

 private:
  node::Group& group_;
  const Store& store_;
  LeaseKeeper& keeper_;
  const lease::Duration timeout_;
};

}  // namespace

std::unique_ptr<LedGroup> led_group(node::Group& group, const Store& store, LeaseKeeper& keeper,
                                    lease::Duration timeout) {
  return std::make_unique<ReplicaHere>(group, store, keeper, timeout);
}

}  // namespace leasehold::kv
