// The state of a core as 128 bits, for exploring the states of a core.
#pragma once

#include <leasehold/raft/core.h>
#include <leasehold/raft/process_promises.h>

#include <cstdint>

namespace leasehold::raft {

/// 128 bits that are collected word by word. Not safe against an adversary: states that differ have
/// different ones, except by an accident of one in 2^128 for each pair.
struct Fingerprint {
  std::uint64_t high = 0x243f6a8885a308d3U;
  std::uint64_t low = 0x13198a2e03707344U;

  void add(std::uint64_t word) {
    high = mix(high ^ word);
    low = mix(low + word * 0x9e3779b97f4a7c15U + 1);
  }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
};

/// Adds the state that decides how `core` acts from `now` on. Two cores that add the same act the
/// same on the same inputs, as long as their election timeouts are drawn alike: instants are taken
/// as distances from `now`, past ones are all one, names of batches and intents count from the
/// oldest that is still in use, and the state of the random generator is left out. Call it when
/// take_ready() has returned false.
void add_core(const Core& core, Now now, Fingerprint& fingerprint);
/// The same of the promises between processes, as long as no group has to wait to elect.
void add_promises(const ProcessPromises& promises, Now now, Fingerprint& fingerprint);
void add_message(const Message& message, Fingerprint& fingerprint);
void add_hard_state(const HardState& state, Fingerprint& fingerprint);
void add_entry(const Entry& entry, Fingerprint& fingerprint);

}  // namespace leasehold::raft
