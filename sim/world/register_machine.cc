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
#include <leasehold/base/coding.h>
#include <leasehold/base/random.h>
#include <leasehold/sim/world/register_machine.h>

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

char masked(char c, Random& mask) {
  return static_cast<char>(static_cast<unsigned char>(c) ^ (mask.next() & 0xffU));
}

using Verdict = replica::SessionTable::Verdict;

}  // namespace

Bytes RegisterMachine::encode(const Command& command) {
  if (command.kind == Kind::leases) return Bytes(kLeases + command.of_store);
  std::string out(1, kShapes[static_cast<std::size_t>(command.kind)].letter);
  LittleWriter to(out);
  switch (command.kind) {
    case Kind::set:
      to.u64(command.key);
      to.u64(command.value);
      break;
    case Kind::open: to.u64(command.value); break;
    case Kind::once:
      to.u64(command.session.value());
      to.u64(command.sequence);
      to.u64(command.answered_below);
      to.u64(command.key);
      to.u64(command.value);
      break;
    case Kind::expire:
      to.u64(command.session.value());
      to.u64(command.activity);
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
  LittleReader in(bytes.substr(1));
  Command command;
  command.kind = static_cast<Kind>(kind);
  switch (command.kind) {
    case Kind::set:
      command.key = in.u64();
      command.value = in.u64();
      break;
    case Kind::open: command.value = in.u64(); break;
    case Kind::once:
      command.session = replica::SessionId(in.u64());
      command.sequence = in.u64();
      command.answered_below = in.u64();
      command.key = in.u64();
      command.value = in.u64();
      break;
    case Kind::expire:
      command.session = replica::SessionId(in.u64());
      command.activity = in.u64();
      break;
    case Kind::leases: LEASEHOLD_UNREACHABLE();
  }
  return command;
}

Bytes RegisterMachine::encode_number(std::uint64_t number) {
  std::string out;
  LittleWriter(out).u64(number);
  return Bytes(std::move(out));
}

std::optional<std::uint64_t> RegisterMachine::decode_number(std::string_view result) {
  if (result.size() != kNumberBytes) return std::nullopt;
  return LittleReader(result).u64();
}

std::optional<RegisterMachine::Answer> RegisterMachine::decode_answer(std::string_view result) {
  if (result.empty()) return std::nullopt;
  Answer answer;
  answer.verdict = static_cast<Verdict>(result[0]);
  const bool executed = answer.verdict == Verdict::execute || answer.verdict == Verdict::repeated;
  if (result.size() != (executed ? 1 + kRegisterBytes : 1)) return std::nullopt;
  if (!executed) return answer;
  LittleReader in(result.substr(1));
  answer.value = in.u64();
  answer.executed_at = raft::Index(in.u64());
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
  LittleWriter to(kept);
  to.u64(command.value);
  to.u64(index.value());
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
  LittleWriter to(out);
  to.u64(nonce);
  for (const std::uint64_t number :
       {state.applied.value(), state.history, std::uint64_t{state.values.size()}}) {
    to.u64(number ^ mask.next());
  }
  for (const auto& [key, value] : state.values) {
    to.u64(key ^ mask.next());
    to.u64(value ^ mask.next());
  }
  const std::string leases = state.leases.encode();
  to.u64(leases.size() ^ mask.next());
  for (const char c : leases) out.push_back(masked(c, mask));
  const Bytes sessions = state.sessions.encode_all();
  for (const char c : sessions.view()) out.push_back(masked(c, mask));
  return out;
}

std::optional<RegisterMachine::State> RegisterMachine::decode(std::string_view bytes) {
  LittleReader in(bytes);
  if (bytes.size() < kHeadBytes || in.u8() != 'R') return std::nullopt;
  Random mask(in.u64());
  const auto next = [&in, &mask] { return in.u64() ^ mask.next(); };
  State state;
  state.applied = raft::Index(next());
  state.history = next();
  const std::uint64_t count = next();
  if (count > (in.rest().size() - kNumberBytes) / kRegisterBytes) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t key = next();
    state.values[key] = next();
  }
  const std::string_view masked_leases = in.take(next());
  if (!in.ok()) return std::nullopt;
  std::string of_leases;
  for (const char c : masked_leases) of_leases.push_back(masked(c, mask));
  std::optional<LeaseCells> leases = LeaseCells::decode(of_leases);
  if (!leases) return std::nullopt;
  state.leases = std::move(*leases);
  std::string rest;
  for (const char c : in.take_rest()) rest.push_back(masked(c, mask));
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
