// MULTI: the commands that a connection has queued, and the keys that it watches.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/server/front/command_spec.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::server {

/// Bytes of the words of queued commands that need no store.
inline constexpr std::size_t kQueuedHereBytesMax = 1U << 20U;

/// Whose results EXEC returns, in order.
struct TransactionParts {
  std::vector<const CommandSpec*> specs;
  /// Replies of commands that need no store, by place in `specs`. The others are operations.
  std::map<std::size_t, std::string> here;
};

/// The queue is kept as the one log entry that it becomes, so it has the limits of an entry.
class Multi {
 public:
  /// The words of commands that run here, by place in the queue.
  using Here = std::map<std::size_t, std::vector<std::string>>;

  bool open() const { return state_ != nullptr && state_->open; }
  /// Keys are watched, or a WATCH failed.
  bool watching() const {
    return state_ != nullptr && (state_->watch_failed || state_->builder.watched() > 0);
  }
  void begin() { state().open = true; }
  /// EXEC will refuse: a command was refused where it should have been queued.
  void spoil() { state().spoiled = true; }
  /// EXEC will refuse: the client relies on a WATCH that failed.
  void fail_watch() { state().watch_failed = true; }
  /// EXEC will refuse if this command, which was refused, has to do with it. An EXEC that is
  /// refused ends the transaction: its client takes what follows for commands of their own.
  void note_refused(const CommandSpec& spec) {
    if (open() && spec.name == "exec") return clear();
    if (open()) return spoil();
    if (is_of_transaction(spec)) fail_watch();
  }
  Result<void> queue(const CommandSpec& spec, const kv::Operation& operation);
  /// One that runs here, when EXEC does.
  Result<void> queue_here(const CommandSpec& spec, const Arguments& args);
  Result<void> watch(const kv::Watched& watched) { return state().builder.watch(watched); }
  /// Where there are many groups: what is watched and queued is of this slot.
  void stay_in(std::uint32_t slot) { state().slot = slot; }
  /// Where there are many groups: something without keys is queued, which is of the group that the
  /// connection has selected.
  void stay_in_selected() { state().in_selected = true; }
  bool in_selected() const { return state_ != nullptr && state_->in_selected; }
  std::optional<std::uint32_t> slot() const {
    return state_ == nullptr ? std::nullopt : state_->slot;
  }
  std::size_t queued() const { return state_ == nullptr ? 0 : state_->specs.size(); }
  /// Memory of the queue and of the watched keys.
  std::size_t held_bytes() const;

  /// The queue for EXEC; afterwards the state is that of a new connection.
  struct Finished {
    bool spoiled = false;
    bool watch_failed = false;
    bool empty = false;  ///< the store has nothing to do or to compare
    Bytes command;
    std::vector<const CommandSpec*> specs;
    Here here;
  };
  Finished finish();
  /// Nothing is queued, nothing is watched.
  void clear() { state_.reset(); }

 private:
  struct State {
    bool open = false;
    bool spoiled = false;
    bool watch_failed = false;
    bool in_selected = false;
    std::optional<std::uint32_t> slot;
    kv::TransactionBuilder builder;
    std::vector<const CommandSpec*> specs;
    Here here;
    std::size_t here_bytes = 0;
    std::size_t here_words = 0;
  };
  State& state();
  std::unique_ptr<State> state_;  ///< most connections never need one
};

}  // namespace leasehold::server
