// What the operations on fractions, bits and copies of values do.
#include <leasehold/kv/decimal.h>
#include <leasehold/kv/run.h>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace leasehold::kv {

ErrorReply too_many_steps() {
  return ErrorReply{ErrorKind::limit,
                    fmt::format("nothing was done: it would take more than {} steps; give shorter "
                                "values, or fewer of them at once",
                                kStepsMax)};
}

Result<Reply> run(const IncrByFloat& incr, Draft& draft) {
  const auto loaded = draft.load(incr.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::string_view base = old ? old->bytes.view() : "0";
  if (!is_decimal(base)) {
    return Reply(ErrorReply{ErrorKind::not_a_number, "value is not a valid float"});
  }
  if (auto why = draft.take_steps(base.size() + incr.delta.size())) return Reply(*why);
  const auto sum = add_decimals(base, incr.delta);
  if (!sum) {
    return Reply(ErrorReply{ErrorKind::overflow, "increment would produce NaN or Infinity"});
  }
  draft.write(incr.key, Bytes(std::string_view(*sum)), old, Draft::lease_of(old));
  return Reply(ValueReply{Bytes(std::string_view(*sum))});
}

}  // namespace leasehold::kv
