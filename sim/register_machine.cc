// A command: a letter, then numbers of 8 bytes, little-endian:
//
//     'S' key value
//     'O' nonce
//     'N' session, sequence, answered below, key, value
//     'E' session, activity
//
// or 'L' and a command of the store.
//
// An answer: the verdict, 1 byte; of a command that was executed the value and the index, too.
//
// A snapshot: the byte 'R', a nonce, then bytes that are masked by what follows from the nonce: the
// applied index, the digest of the history, how many registers, for each its key and value, the
// length of the leases, these, and the table of the sessions.
#include <leasehold/base/assert.h>
#include <leasehold/base/random.h>
#include <leasehold/sim/register_machine.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kHeadBytes = 1 + 5 * kNumberBytes;
constexpr char kLeases = 'L';
constexpr std::size_t kRegisterBytes = 2 * kNumberBytes;

/// The numbers behind each letter.
struct Shape {
  char letter;
  std::size_t numbers;
};
constexpr Shape kShapes[] = {{'S', 2}, {'O', 1}, {'N', 5}, {'E', 2}};

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

char masked(char c, Random& mask) {
  return static_cast<char>(static_cast<unsigned char>(c) ^ (mask.next() & 0xffU));
}

using Verdict = replica::SessionTable::Verdict;

}  // namespace

Bytes RegisterMachine::encode(const Command& command) {
  if (command.kind == Kind::leases) return Bytes(kLeases + command.of_store);
  std::string out(1, kShapes[static_cast<std::size_t>(command.kind)].letter);
  switch (command.kind) {
    case Kind::set:
      put(out, command.key);
      put(out, command.value);
      break;
    case Kind::open: put(out, command.value); break;
    case Kind::once:
      put(out, command.session.value());
      put(out, command.sequence);
      put(out, command.answered_below);
      put(out, command.key);
      put(out, command.value);
      break;
    case Kind::expire:
      put(out, command.session.value());
      put(out, command.activity);
      break;
    case Kind::leases: LEASEHOLD_UNREACHABLE();
  }
  return Bytes(std::move(out));
}

std::optional<RegisterMachine::Command> RegisterMachine::decode_command(std::string_view bytes) {
  if (!bytes.empty() && bytes[0] == kLeases) {
    Command command;
    command.kind = Kind::leases;
    command.of_store = bytes.substr(1);
    return command;
  }
  std::size_t kind = 0;
  while (kind < 4 && (bytes.empty() || bytes[0] != kShapes[kind].letter)) ++kind;
  if (kind == 4 || bytes.size() != 1 + kShapes[kind].numbers * kNumberBytes) return std::nullopt;
  const auto number = [bytes](std::size_t which) {
    return get(bytes.substr(1 + which * kNumberBytes));
  };
  Command command;
  command.kind = static_cast<Kind>(kind);
  switch (command.kind) {
    case Kind::set:
      command.key = number(0);
      command.value = number(1);
      break;
    case Kind::open: command.value = number(0); break;
    case Kind::once:
      command.session = replica::SessionId(number(0));
      command.sequence = number(1);
      command.answered_below = number(2);
      command.key = number(3);
      command.value = number(4);
      break;
    case Kind::expire:
      command.session = replica::SessionId(number(0));
      command.activity = number(1);
      break;
    case Kind::leases: LEASEHOLD_UNREACHABLE();
  }
  return command;
}

Bytes RegisterMachine::encode_number(std::uint64_t number) {
  std::string out;
  put(out, number);
  return Bytes(std::move(out));
}

std::optional<std::uint64_t> RegisterMachine::decode_number(std::string_view result) {
  if (result.size() != kNumberBytes) return std::nullopt;
  return get(result);
}

std::optional<RegisterMachine::Answer> RegisterMachine::decode_answer(std::string_view result) {
  if (result.empty()) return std::nullopt;
  Answer answer;
  answer.verdict = static_cast<Verdict>(result[0]);
  const bool executed = answer.verdict == Verdict::execute || answer.verdict == Verdict::repeated;
  if (result.size() != (executed ? 1 + kRegisterBytes : 1)) return std::nullopt;
  if (!executed) return answer;
  answer.value = get(result.substr(1));
  answer.executed_at = raft::Index(get(result.substr(1 + kNumberBytes)));
  return answer;
}

namespace {

/// A command of a session: judged by the table, executed if that says so.
RegisterMachine::Done apply_once(RegisterMachine::State& state, raft::Index index,
                                 const RegisterMachine::Command& command) {
  const replica::SessionTable::Begun begun =
      state.sessions.begin(command.session, command.sequence, command.answered_below);
  std::string result(1, static_cast<char>(begun.verdict));
  if (begun.verdict != Verdict::execute) {
    result += begun.result.view();
    return {Bytes(std::move(result)), false};
  }
  state.values[command.key] = command.value;
  std::string kept;
  put(kept, command.value);
  put(kept, index.value());
  result += kept;
  state.sessions.finish(command.session, command.sequence, Bytes(std::move(kept)));
  return {Bytes(std::move(result)), true};
}

RegisterMachine::Done apply_one(RegisterMachine::State& state, raft::LogId id,
                                const RegisterMachine::Command& command) {
  using Kind = RegisterMachine::Kind;
  switch (command.kind) {
    case Kind::set:
      state.values[command.key] = command.value;
      return {RegisterMachine::encode_number(command.value), true};
    case Kind::open: {
      const replica::SessionId opened = state.sessions.open().value_or(replica::SessionId(0));
      return {RegisterMachine::encode_number(opened.value()), false};
    }
    case Kind::once: return apply_once(state, id.index, command);
    case Kind::expire: {
      const bool gone = state.sessions.expire(command.session, command.activity);
      return {RegisterMachine::encode_number(gone ? 1 : 0), false};
    }
    case Kind::leases: {
      RegisterMachine::Done done;
      done.result = state.leases.apply(id.term, command.of_store, &done.told);
      return done;
    }
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace

RegisterMachine::Done RegisterMachine::apply_to(State& state, raft::LogId id,
                                                const Command& command) {
  Done done = apply_one(state, id, command);
  std::uint64_t told = 0;
  for (const char c : done.result.view()) told = told * 257 + static_cast<unsigned char>(c) + 1;
  for (const std::uint64_t number : {id.index.value(), command.key, command.value, told}) {
    state.history = (state.history ^ number) * 0x9e3779b97f4a7c15U;
    state.history ^= state.history >> 29;
  }
  return done;
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
  const std::string leases = state.leases.encode();
  put(out, leases.size() ^ mask.next());
  for (const char c : leases) out.push_back(masked(c, mask));
  const Bytes sessions = state.sessions.encode_all();
  for (const char c : sessions.view()) out.push_back(masked(c, mask));
  return out;
}

std::optional<RegisterMachine::State> RegisterMachine::decode(std::string_view bytes) {
  if (bytes.size() < kHeadBytes || bytes[0] != 'R') return std::nullopt;
  Random mask(get(bytes.substr(1)));
  bytes.remove_prefix(1 + kNumberBytes);
  const auto next = [&bytes, &mask] {
    const std::uint64_t number = get(bytes) ^ mask.next();
    bytes.remove_prefix(kNumberBytes);
    return number;
  };
  State state;
  state.applied = raft::Index(next());
  state.history = next();
  const std::uint64_t count = next();
  if (count > (bytes.size() - kNumberBytes) / kRegisterBytes) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t key = next();
    state.values[key] = next();
  }
  const std::uint64_t length = next();
  if (length > bytes.size()) return std::nullopt;
  std::string of_leases;
  for (const char c : bytes.substr(0, length)) of_leases.push_back(masked(c, mask));
  bytes.remove_prefix(length);
  std::optional<LeaseCells> leases = LeaseCells::decode(of_leases);
  if (!leases) return std::nullopt;
  state.leases = std::move(*leases);
  std::string rest;
  for (const char c : bytes) rest.push_back(masked(c, mask));
  Result<replica::SessionTable> sessions = replica::SessionTable::decode_all(rest);
  if (!sessions.ok()) return std::nullopt;
  state.sessions = std::move(sessions).value();
  return state;
}

std::vector<Bytes> RegisterMachine::apply(const std::vector<replica::Command>& commands,
                                          raft::Index last) {
  std::vector<Bytes> results;
  for (const replica::Command& command : commands) {
    const std::optional<Command> decoded = decode_command(command.bytes);
    if (!decoded) {
      ++malformed_;
      results.push_back(Bytes(std::string_view("malformed")));
      continue;
    }
    Done done = apply_to(present_, command.id, *decoded);
    for (const kv::Revision& revision : done.told) events_.stage(revision);
    events_.publish();
    results.push_back(std::move(done.result));
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

Result<std::shared_ptr<const replica::Snapshot>> RegisterMachine::take_snapshot() {
  const std::uint64_t nonce = Random(seed_ + ++snapshots_).next();
  return std::shared_ptr<const replica::Snapshot>(
      std::make_shared<SnapshotBytes>(present_.applied, Bytes(encode(present_, nonce))));
}

Result<void> RegisterMachine::install_snapshot(const replica::Snapshot& snapshot) {
  std::string bytes(static_cast<std::size_t>(snapshot.size()), '\0');
  const Result<void> read = snapshot.read(0, bytes.data(), bytes.size());
  if (!read.ok()) return read;
  std::optional<State> state = decode(bytes);
  if (!state || state->applied != snapshot.last()) {
    return Error{ErrorCode::corrupted, "these bytes are no snapshot of registers"};
  }
  durable_ = *state;
  present_ = std::move(*state);
  events_.restart(present_.leases.revision);
  return {};
}

void RegisterMachine::crash() {
  present_ = durable_;
  events_.restart(present_.leases.revision);
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
