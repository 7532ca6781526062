#include <leasehold/kv/load_limit.h>
#include <leasehold/server/commands/key_flush.h>
#include <leasehold/server/front/replies.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::server {
namespace {

/// A slot on its way is nobody's, or its keys are in two groups.
bool on_its_way(const kv::SlotMap& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const auto& slot) {
    return slot.second.phase == kv::SlotPhase::frozen ||
           slot.second.phase == kv::SlotPhase::arriving;
  });
}

bool served(const kv::SlotMap& slots, std::string_view key) {
  if (slots.empty()) return true;
  const auto at = slots.find(kv::slot_of(key));
  return at == slots.end() || kv::serves(&at->second);
}

/// One step at a time: a read by the leader's word in each group, and then keys are found and
/// deleted in turn, until there are no more.
class KeyFlush : public std::enable_shared_from_this<KeyFlush> {
 public:
  KeyFlush(const Session::Context& context, std::function<void(std::string)> done)
      : groups_(context.groups),
        state_(context.state),
        background_(*context.background),
        routes_(context.groups.routes_version()),
        done_(std::move(done)) {}

  void begin_group() {
    while (at_ < groups_.all().size() && !group().here()) ++at_;
    if (at_ == groups_.all().size()) return finish();
    after_.reset();
    count_ = kFlushKeys;
    const auto mode = state_.options.lease_reads ? raft::ReadMode::lease : raft::ReadMode::quorum;
    group().group.read(mode, node::CallOptions(state_.options.command_timeout),
                       [self = shared_from_this()](const replica::ReadResult& result) {
                         if (!result.index) {
                           std::string reply;
                           append_not_executed(reply, result.overloaded, result.leader);
                           return self->fail(reply);
                         }
                         self->go_on();
                       });
  }

 private:
  const ServedGroup& group() const { return groups_.all()[at_]; }

  void go_on() {
    background_.post([self = shared_from_this()] { self->find(); });
  }

  void find() {
    const auto slots = group().store.slots().list();
    moving_ = moving_ || on_its_way(*slots);
    auto found = group().store.keys_after(after_, count_);
    if (!found) return fail("-ERR the store failed: " + found.error().message + "\r\n");
    if (found.value().empty()) {
      ++at_;
      return begin_group();
    }
    std::vector<std::string> keys;
    std::size_t bytes = 0;
    for (std::string& key : found.value()) {
      if (bytes > kFlushBytes) break;
      bytes += key.size();
      next_ = key;
      if (served(*slots, key)) keys.push_back(std::move(key));
    }
    if (keys.empty()) {
      after_ = next_;
      return go_on();
    }
    remove(keys);
  }

  void remove(const std::vector<std::string>& keys) {
    batch_ = keys.size();
    node::Group& node = group().group;
    auto encoded = kv::encode_command(kv::Del{{keys.begin(), keys.end()}});
    if (encoded) {
      encoded = kv::limit_loads(std::move(encoded).value(), node.lease_view().level());
    }
    if (!encoded) return fail("-ERR " + encoded.error().message + "\r\n");
    node.propose(
        std::move(encoded).value(), node::CallOptions(state_.options.command_timeout),
        [self = shared_from_this()](const replica::ProposeResult& result) { self->take(result); });
  }

  void take(const replica::ProposeResult& result) {
    std::string reply;
    switch (result.status) {
      case replica::ProposeStatus::committed: return take(result.result);
      case replica::ProposeStatus::dropped: append_dropped(reply, result); break;
      case replica::ProposeStatus::unknown:
        append_error(reply, "UNKNOWNOUTCOME the command may still be executed");
        break;
    }
    fail(reply);
  }

  void take(const Bytes& bytes) {
    const auto reply = kv::decode_reply(bytes);
    if (!reply) return fail("-ERR " + reply.error().message + "\r\n");
    if (const auto* error = std::get_if<kv::ErrorReply>(&reply.value())) {
      // The values are large: fewer keys at once.
      if (error->kind == kv::ErrorKind::limit && batch_ > 1) {
        count_ = std::max<std::size_t>(1, batch_ / 2);
        return go_on();
      }
      const bool unknown = error->kind == kv::ErrorKind::store_failed;
      return fail((unknown ? "-UNKNOWNOUTCOME " : "-TRYAGAIN ") + error->text + "\r\n");
    }
    some_ = true;
    after_ = next_;
    go_on();
  }

  void finish() {
    std::string reply;
    if (moving_ || routes_ != groups_.routes().newest_version()) {
      append_error(reply,
                   "TRYAGAIN a slot is on its way to another group, and some of its keys may be "
                   "left: send the command again");
    } else {
      append_simple(reply, "OK");
    }
    done_(std::move(reply));
  }

  /// `reply`: what became of the present step.
  void fail(const std::string& reply) {
    if (!some_) return done_(reply);
    const std::string_view why = std::string_view(reply).substr(1, reply.size() - 3);
    // Keys may still be deleted behind the answer, also such that are written then.
    const bool unknown = why.rfind("UNKNOWNOUTCOME", 0) == 0;
    std::string partial;
    append_error(partial,
                 fmt::format("{} some keys were deleted, and not all; send the command again ({})",
                             unknown ? "UNKNOWNOUTCOME" : "TRYAGAIN", why));
    done_(std::move(partial));
  }

  const ServedGroups& groups_;
  ServerState& state_;
  Executor& background_;
  const std::uint64_t routes_;
  const std::function<void(std::string)> done_;
  std::size_t at_ = 0;                ///< the group
  std::optional<std::string> after_;  ///< keys up to it are deleted
  std::string next_;                  ///< the last one of the batch
  std::size_t count_ = kFlushKeys;
  std::size_t batch_ = 0;
  bool some_ = false;
  bool moving_ = false;
};

}  // namespace

void flush_keys(const Session::Context& context, std::function<void(std::string)> done) {
  std::make_shared<KeyFlush>(context, std::move(done))->begin_group();
}

}  // namespace leasehold::server
