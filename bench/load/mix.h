// What a load consists of: the shares of its operations, and the operations one after the other.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/bench/load/key_choice.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::bench {

enum class OperationKind : std::uint8_t {
  read,    ///< GET
  update,  ///< SET of a key that is there
  insert,  ///< SET of a new key
  scan,    ///< MGET of keys that follow each other: the protocol of Redis has no ordered scan
  modify,  ///< GET, then SET of the same key
};
inline constexpr std::size_t kKinds = 5;
/// "read-modify-write" for modify.
const char* kind_name(OperationKind kind);

/// In percent, by kind.
struct Mix {
  std::array<unsigned, kKinds> percent{};
  Distribution distribution = Distribution::uniform;  ///< unless the user chooses one

  unsigned of(OperationKind kind) const { return percent[static_cast<std::size_t>(kind)]; }
};

/// "get", "set", and "ycsb-a" to "ycsb-f" as YCSB's core workloads define them.
std::optional<Mix> mix_named(std::string_view name);
/// For messages: "get, set, ycsb-a, ...".
std::string mix_names();

/// Keys of one scan: from 1 to this, uniform, as in YCSB.
inline constexpr std::uint64_t kScanMax = 100;

struct LoadOperation {
  OperationKind kind = OperationKind::read;
  std::uint64_t key = 0;
  std::uint64_t count = 1;  ///< keys, of a scan
};

/// The operations of a run.
class OperationSource {
 public:
  OperationSource(const Mix& mix, Distribution distribution, std::uint64_t keys, std::uint64_t seed)
      : mix_(mix), choice_(distribution, keys), random_(seed) {}

  LoadOperation next();

 private:
  Mix mix_;
  KeyChoice choice_;
  Random random_;
};

}  // namespace leasehold::bench
