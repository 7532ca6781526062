// All keys of the store, a part at a time: their names together may be much more than a reply.
#pragma once

#include <leasehold/kv/command_limits.h>
#include <leasehold/kv/give_way.h>
#include <leasehold/server/front/store_reader.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace leasehold::server {

/// Keys and bytes of their names that one command goes through.
inline constexpr std::size_t kWalkedKeysMax = 100'000;
inline constexpr std::size_t kWalkedBytesMax = std::size_t{64} << 20U;
/// Keys that are in memory at a time.
inline constexpr std::size_t kWalkStepKeys = 256;

enum class Walked : std::uint8_t {
  all,
  stopped,  ///< by the visitor
  keys,     ///< there are too many
  bytes,    ///< their names are too long
  failed,   ///< the store
};

/// Calls visit(key) for each key, in order, until it says false. A key that exists all the while is
/// visited once. `error`: why the store failed.
template <class Visit>
Walked walk_keys(const kv::Store& store, Visit visit, std::string& error) {
  if (store.size() > kWalkedKeysMax) return Walked::keys;
  std::optional<std::string> after;
  std::size_t seen = 0;
  std::size_t bytes = 0;
  kv::GiveWay way;
  for (;;) {
    auto part = store.keys_after(after, kWalkStepKeys);
    if (!part) {
      error = part.error().message;
      return Walked::failed;
    }
    for (std::string& key : part.value()) {
      way.step();
      bytes += key.size();
      if (++seen > kWalkedKeysMax) return Walked::keys;
      if (bytes > kWalkedBytesMax) return Walked::bytes;
      if (!visit(key)) return Walked::stopped;
    }
    if (part.value().size() < kWalkStepKeys) return Walked::all;
    after = std::move(part.value().back());
  }
}

}  // namespace leasehold::server
