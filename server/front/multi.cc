#include <leasehold/server/front/multi.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::server {
namespace {

/// Memory of a command that is queued here, beside its words.
constexpr std::size_t kQueuedHereCost = 128;

}  // namespace

Multi::State& Multi::state() {
  if (!state_) state_ = std::make_unique<State>();
  return *state_;
}

Result<void> Multi::queue(const CommandSpec& spec, const kv::Operation& operation) {
  if (auto added = state().builder.add(operation); !added) return added;
  state_->specs.push_back(&spec);
  return {};
}

Result<void> Multi::queue_here(const CommandSpec& spec, const Arguments& args) {
  State& queue = state();
  std::size_t bytes = 0;
  for (const std::string_view word : args) bytes += word.size();
  if (queue.here_bytes + bytes > kQueuedHereBytesMax || queue.here.size() >= kv::kOperationsMax) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("a transaction holds at most {} of PING, ECHO and TIME, and {} bytes of their "
                    "words; send them outside of MULTI",
                    kv::kOperationsMax, kQueuedHereBytesMax)};
  }
  queue.here_bytes += bytes;
  queue.here_words += args.size();
  queue.here.emplace(queue.specs.size(), std::vector<std::string>(args.begin(), args.end()));
  queue.specs.push_back(&spec);
  return {};
}

std::size_t Multi::held_bytes() const {
  if (state_ == nullptr) return 0;
  return state_->builder.held_bytes() + state_->specs.capacity() * sizeof(const CommandSpec*) +
         state_->here.size() * kQueuedHereCost + state_->here_words * sizeof(std::string) +
         state_->here_bytes;
}

Multi::Finished Multi::finish() {
  State& found = state();
  Finished finished;
  finished.spoiled = found.spoiled;
  finished.watch_failed = found.watch_failed;
  finished.empty = found.builder.operations() == 0 && found.builder.watched() == 0;
  finished.command = found.builder.finish();
  finished.specs = std::move(found.specs);
  finished.here = std::move(found.here);
  clear();
  return finished;
}

}  // namespace leasehold::server
