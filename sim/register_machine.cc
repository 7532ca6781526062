// A command: the byte 'S', the key, the value; both 8 bytes, little-endian.
//
// A snapshot: the byte 'R', a nonce, then numbers that are masked by what follows from the nonce:
// the applied index, the digest of the history, how many registers, and for each its key and value.
#include <leasehold/base/assert.h>
#include <leasehold/base/random.h>
#include <leasehold/sim/register_machine.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr std::size_t kCommandBytes = 17;
constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kHeadBytes = 1 + 4 * kNumberBytes;

void put(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
  }
}

std::uint64_t get(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i > 0; --i) {
    number = (number << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  return number;
}

}  // namespace

Bytes RegisterMachine::encode_set(std::uint64_t key, std::uint64_t value) {
  std::string out = "S";
  put(out, key);
  put(out, value);
  return Bytes(std::move(out));
}

Bytes RegisterMachine::encode_value(std::uint64_t value) {
  std::string out;
  put(out, value);
  return Bytes(std::move(out));
}

std::optional<RegisterMachine::Set> RegisterMachine::decode_set(std::string_view command) {
  if (command.size() != kCommandBytes || command[0] != 'S') return std::nullopt;
  return Set{get(command.substr(1)), get(command.substr(1 + kNumberBytes))};
}

void RegisterMachine::apply_to(State& state, raft::Index index, const Set& set) {
  state.values[set.key] = set.value;
  for (const std::uint64_t number : {index.value(), set.key, set.value}) {
    state.history = (state.history ^ number) * 0x9e3779b97f4a7c15U;
    state.history ^= state.history >> 29;
  }
}

std::string RegisterMachine::encode(const State& state, std::uint64_t nonce) {
  Random mask(nonce);
  std::string out = "R";
  put(out, nonce);
  for (const std::uint64_t number :
       {state.applied.value(), state.history, std::uint64_t{state.values.size()}}) {
    put(out, number ^ mask.next());
  }
  for (const auto& [key, value] : state.values) {
    put(out, key ^ mask.next());
    put(out, value ^ mask.next());
  }
  return out;
}

std::optional<RegisterMachine::State> RegisterMachine::decode(std::string_view bytes) {
  if (bytes.size() < kHeadBytes || bytes[0] != 'R') return std::nullopt;
  Random mask(get(bytes.substr(1)));
  std::size_t at = 1 + kNumberBytes;
  const auto next = [&bytes, &mask, &at] {
    const std::uint64_t number = get(bytes.substr(at)) ^ mask.next();
    at += kNumberBytes;
    return number;
  };
  State state;
  state.applied = raft::Index(next());
  state.history = next();
  const std::uint64_t count = next();
  const std::size_t rest = bytes.size() - kHeadBytes;
  if (rest % (2 * kNumberBytes) != 0 || count != rest / (2 * kNumberBytes)) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t key = next();
    state.values[key] = next();
  }
  return state;
}

std::vector<Bytes> RegisterMachine::apply(const std::vector<node::Command>& commands,
                                          raft::Index last) {
  std::vector<Bytes> results;
  for (const node::Command& command : commands) {
    const std::optional<Set> set = decode_set(command.bytes);
    if (!set) {
      ++malformed_;
      results.push_back(Bytes(std::string_view("malformed")));
      continue;
    }
    apply_to(present_, command.id.index, *set);
    results.push_back(encode_value(set->value));
  }
  present_.applied = last;
  return results;
}

Result<raft::Index> RegisterMachine::make_durable() {
  durable_ = present_;
  return durable_.applied;
}

void RegisterMachine::make_durable(const State& earlier) {
  if (earlier.applied > durable_.applied) durable_ = earlier;
}

Result<std::shared_ptr<const node::Snapshot>> RegisterMachine::take_snapshot() {
  const std::uint64_t nonce = Random(seed_ + ++snapshots_).next();
  return std::shared_ptr<const node::Snapshot>(
      std::make_shared<SnapshotBytes>(present_.applied, Bytes(encode(present_, nonce))));
}

Result<void> RegisterMachine::install_snapshot(const node::Snapshot& snapshot) {
  std::string bytes(static_cast<std::size_t>(snapshot.size()), '\0');
  const Result<void> read = snapshot.read(0, bytes.data(), bytes.size());
  if (!read.ok()) return read;
  std::optional<State> state = decode(bytes);
  if (!state || state->applied != snapshot.last()) {
    return Error{ErrorCode::corrupted, "these bytes are no snapshot of registers"};
  }
  durable_ = *state;
  present_ = std::move(*state);
  return {};
}

Result<void> SnapshotBytes::read(std::uint64_t offset, char* to, std::size_t bytes) const {
  LEASEHOLD_ASSERT(offset <= bytes_.size() && bytes <= bytes_.size() - offset);
  std::memcpy(to, bytes_.data() + offset, bytes);
  return {};
}

std::uint64_t RegisterMachine::value(std::uint64_t key) const {
  const auto found = present_.values.find(key);
  return found == present_.values.end() ? 0 : found->second;
}

}  // namespace leasehold::sim
