// What the commands on bits ask of the store.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/words.h>

#include <optional>
#include <string>

namespace leasehold::server {
namespace {

constexpr const char* kNoOffset = "ERR bit offset is not an integer or out of range";
constexpr const char* kNoBit = "ERR bit is not an integer or out of range";
/// As in Redis: what may be asked for, and is 0 behind the end.
constexpr std::int64_t kOffsetMax = (std::int64_t{1} << 32U) - 1;

std::optional<std::uint32_t> parse_offset(std::string_view word, std::int64_t max) {
  const auto offset = parse_integer(word);
  if (!offset || *offset < 0 || *offset > max) return std::nullopt;
  return static_cast<std::uint32_t>(*offset);
}

}  // namespace

std::string make_setbit(const Arguments& args, kv::Operation& operation) {
  const auto at = parse_offset(args[2], std::int64_t{kv::kBitsMax} - 1);
  if (!at) return kNoOffset;
  const auto bit = parse_integer(args[3]);
  if (!bit || (*bit != 0 && *bit != 1)) return kNoBit;
  operation = kv::SetBit{*at, *bit == 1, args[1]};
  return {};
}

std::string make_getbit(const Arguments& args, kv::Operation& operation) {
  const auto at = parse_offset(args[2], kOffsetMax);
  if (!at) return kNoOffset;
  operation = kv::GetBit{*at, args[1]};
  return {};
}

std::string make_bitcount(const Arguments& args, kv::Operation& operation) {
  if (args.size() == 3 || args.size() > 5) return "ERR syntax error";
  kv::BitCount count;
  count.key = args[1];
  if (args.size() > 3) {
    const auto start = parse_integer(args[2]);
    const auto end = parse_integer(args[3]);
    if (!start || !end) return kNotAnInteger;
    count.start = *start;
    count.end = *end;
  }
  if (args.size() == 5) {
    count.bits = equals_ignoring_case(args[4], "bit");
    if (!count.bits && !equals_ignoring_case(args[4], "byte")) return "ERR syntax error";
  }
  operation = count;
  return {};
}

}  // namespace leasehold::server
