#include <leasehold/c/answers.h>
#include <leasehold/c/machine.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::c {
namespace {

Error invalid(const char* text) {
  return Error{ErrorCode::invalid_argument, text};
}

/// What the host's state machine has taken.
class TakenSnapshot final : public replica::Snapshot {
 public:
  explicit TakenSnapshot(const leasehold_snapshot& given) : given_(given) {}
  ~TakenSnapshot() override {
    if (given_.release != nullptr) given_.release(given_.context);
  }
  TakenSnapshot(const TakenSnapshot&) = delete;
  TakenSnapshot& operator=(const TakenSnapshot&) = delete;

  raft::Index last() const override { return raft::Index(given_.last); }
  std::uint64_t size() const override { return given_.size; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    leasehold_error said = {};
    const int status = given_.read(given_.context, offset, to, bytes, &said);
    if (status != LEASEHOLD_OK) return error_of(status, said, "read() of a snapshot");
    return {};
  }

 private:
  const leasehold_snapshot given_;
};

/// `context` is the snapshot of another member.
int read_arrived(void* context, std::uint64_t offset, void* to, std::size_t bytes,
                 leasehold_error* error) {
  const auto& snapshot = *static_cast<const replica::Snapshot*>(context);
  const std::uint64_t size = snapshot.size();
  if (offset > size || bytes > size - offset) {
    return fill(error, LEASEHOLD_INVALID_ARGUMENT, "that is beyond the end of the snapshot");
  }
  if (bytes == 0) return LEASEHOLD_OK;
  const auto done = snapshot.read(offset, static_cast<char*>(to), bytes);
  return done ? LEASEHOLD_OK : fill(error, done.error());
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::make(const leasehold_machine* given) {
  if (given == nullptr) return invalid("the state machine is NULL");
  // The first version has all members that there are.
  if (given->size < sizeof(leasehold_machine)) {
    return invalid("leasehold_machine.size is not sizeof(leasehold_machine)");
  }
  if (given->durable_index == nullptr || given->apply == nullptr) {
    return invalid("leasehold_machine needs durable_index and apply");
  }
  const bool any = given->make_durable != nullptr || given->take_snapshot != nullptr ||
                   given->install_snapshot != nullptr;
  const bool all = given->make_durable != nullptr && given->take_snapshot != nullptr &&
                   given->install_snapshot != nullptr;
  if (any && !all) {
    return invalid(
        "leasehold_machine needs all of make_durable, take_snapshot and install_snapshot, or none");
  }
  return std::unique_ptr<Machine>(new Machine(*given));
}

raft::Index Machine::durable_index() const {
  return raft::Index(functions_.durable_index(functions_.context));
}

std::vector<Bytes> Machine::apply(const std::vector<replica::Command>& commands, raft::Index last) {
  commands_.clear();
  for (const replica::Command& command : commands) {
    commands_.push_back({command.id.index.value(), command.id.term.value(), command.origin.value(),
                         command.bytes.data(), command.bytes.size()});
  }
  leasehold_results results{std::vector<Bytes>(commands.size())};
  functions_.apply(functions_.context, commands_.data(), commands_.size(), last.value(), &results);
  return std::move(results.all);
}

Result<raft::Index> Machine::make_durable() {
  if (functions_.make_durable == nullptr) return StateMachine::make_durable();
  std::uint64_t index = 0;
  leasehold_error said = {};
  const int status = functions_.make_durable(functions_.context, &index, &said);
  if (status != LEASEHOLD_OK) return error_of(status, said, "make_durable()");
  return raft::Index(index);
}

Result<std::shared_ptr<const replica::Snapshot>> Machine::take_snapshot() {
  if (functions_.take_snapshot == nullptr) return StateMachine::take_snapshot();
  leasehold_snapshot taken = {};
  leasehold_error said = {};
  const int status = functions_.take_snapshot(functions_.context, &taken, &said);
  if (status != LEASEHOLD_OK) return error_of(status, said, "take_snapshot()");
  if (taken.read == nullptr || taken.size == 0) {
    if (taken.release != nullptr) taken.release(taken.context);
    return Error{ErrorCode::io, "take_snapshot() gave a snapshot without read() or of no size"};
  }
  return std::shared_ptr<const replica::Snapshot>(std::make_shared<TakenSnapshot>(taken));
}

Result<void> Machine::install_snapshot(const replica::Snapshot& snapshot) {
  if (functions_.install_snapshot == nullptr) return StateMachine::install_snapshot(snapshot);
  leasehold_snapshot arrived = {};
  // read_arrived() changes nothing.
  arrived.context = const_cast<replica::Snapshot*>(&snapshot);
  arrived.last = snapshot.last().value();
  arrived.size = snapshot.size();
  arrived.read = read_arrived;
  leasehold_error said = {};
  const int status = functions_.install_snapshot(functions_.context, &arrived, &said);
  if (status != LEASEHOLD_OK) return error_of(status, said, "install_snapshot()");
  return {};
}

}  // namespace leasehold::c

void leasehold_results_set(leasehold_results* results, size_t place, const void* bytes,
                           size_t size) {
  if (results == nullptr || place >= results->all.size()) return;
  const std::string_view view(static_cast<const char*>(bytes), bytes == nullptr ? 0 : size);
  results->all[place] = leasehold::Bytes(view);
}
