// What the group to which slots move holds of them from earlier attempts.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/store.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv {

/// Goes through the keys of the slots once, in ascending order, beside a copy that does the same.
/// Nobody else may change them: the attempts of before are void, and the store knows that. One
/// thread.
class HeldKeys {
 public:
  /// A key as it has to be; without a value it has to go.
  using Lacking = std::pair<std::string, std::optional<Value>>;

  /// `store` outlives it.
  HeldKeys(const Store& store, const SlotSet& slots) : store_(store), slots_(slots) {}

  /// `rows`: the keys that have to be there behind the `reached` of the last call, up to `reached`
  /// (none: to the end). Returns those that are not there just so, and those that are there and
  /// have to go; ascending. Errors: of the store.
  Result<std::vector<Lacking>> lacking(std::vector<Row> rows,
                                       const std::optional<std::string>& reached);

 private:
  /// The next key up to `reached`; null: there is none.
  Result<const Row*> next(const std::optional<std::string>& reached);

  const Store& store_;
  const SlotSet slots_;
  std::vector<Row> rows_;
  std::size_t at_ = 0;
  std::optional<std::string> after_;
  bool read_all_ = false;
};

}  // namespace leasehold::kv
