#include <leasehold/server/front/multi.h>

#include <utility>

namespace leasehold::server {

Multi::State& Multi::state() {
  if (!state_) state_ = std::make_unique<State>();
  return *state_;
}

Result<void> Multi::queue(const CommandSpec& spec, const kv::Operation& operation) {
  if (auto added = state().builder.add(operation); !added) return added;
  state_->specs.push_back(&spec);
  return {};
}

Multi::Finished Multi::finish() {
  State& found = state();
  Finished finished;
  finished.spoiled = found.spoiled;
  finished.watch_failed = found.watch_failed;
  finished.empty = found.builder.operations() == 0 && found.builder.watched() == 0;
  finished.command = found.builder.finish();
  finished.specs = std::move(found.specs);
  clear();
  return finished;
}

}  // namespace leasehold::server
