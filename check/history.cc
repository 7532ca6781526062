#include <leasehold/base/assert.h>
#include <leasehold/check/history.h>

#include <fmt/format.h>

namespace leasehold::check {
namespace {

constexpr std::uint64_t kStringBit = std::uint64_t{1} << 63U;
/// Every number with this many digits is below 2^63.
constexpr std::size_t kDigitsMax = 18;

}  // namespace

std::uint64_t Texts::number_of(std::string_view text) {
  const bool plain = !text.empty() && text.size() <= kDigitsMax && text[0] != '0';
  std::uint64_t number = 0;
  for (std::size_t i = 0; plain && i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') {
      number = 0;
      break;
    }
    number = number * 10 + static_cast<std::uint64_t>(text[i] - '0');
  }
  if (number != 0) return number;
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const std::uint64_t made = kStringBit | strings_.size();
  strings_.emplace_back(text);
  numbers_.emplace(strings_.back(), made);
  return made;
}

std::string Texts::text_of(std::uint64_t number) const {
  if ((number & kStringBit) == 0) return std::to_string(number);
  LEASEHOLD_ASSERT((number & ~kStringBit) < strings_.size());
  return strings_[static_cast<std::size_t>(number & ~kStringBit)];
}

std::uint64_t Texts::joined(std::uint64_t front, std::uint64_t back) {
  std::string text = front == Operation::kNothing ? "" : text_of(front);
  if (back != Operation::kNothing) text += text_of(back);
  return number_of(text);
}

std::string describe(const Operation& operation, const History* history) {
  const auto value = [history](std::uint64_t number) -> std::string {
    if (history == nullptr) return std::to_string(number);
    return number == Operation::kNothing ? "nothing" : history->values.text_of(number);
  };
  std::string text = operation.line == 0 ? "" : fmt::format("line {}: ", operation.line);
  text += fmt::format("client {} ", operation.client);
  const std::string key = "key " + (history == nullptr ? std::to_string(operation.key)
                                                       : history->keys.text_of(operation.key));
  switch (operation.kind) {
    case OperationKind::read:
      text += fmt::format("reads {} = {}", key, value(operation.value));
      break;
    case OperationKind::write:
      text += fmt::format("writes {} := {}", key, value(operation.value));
      break;
    case OperationKind::remove: text += "removes " + key; break;
    case OperationKind::append:
      text += fmt::format("appends {} to {}", value(operation.value), key);
      break;
    case OperationKind::compare:
      text += fmt::format("changes {} from {} to {}", key, value(operation.expected),
                          value(operation.value));
      break;
  }
  if (operation.returned() && operation.outcome != Outcome::untold) {
    const bool done = operation.outcome == Outcome::yes;
    if (operation.kind == OperationKind::compare) text += done ? ", done" : ", another value there";
    if (operation.kind == OperationKind::remove)
      text += done ? ", it was there" : ", nothing there";
  }
  return fmt::format("{} [{} .. {}]", text, operation.invoked_ns,
                     operation.returned() ? std::to_string(operation.returned_ns) : "never");
}

}  // namespace leasehold::check
