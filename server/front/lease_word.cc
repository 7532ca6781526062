#include <leasehold/server/front/lease_word.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace leasehold::server {
namespace {

bool is_number(std::string_view word) {
  const std::string_view digits = word.substr(!word.empty() && word.front() == '-' ? 1 : 0);
  return !digits.empty() &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct AttachesById {
  bool operator()(const kv::Set& set) const { return set.lease != grant::LeaseId(0); }
  bool operator()(const kv::SetSequential& set) const { return set.lease != grant::LeaseId(0); }
  bool operator()(const kv::AttachKey& attach) const { return attach.lease != grant::LeaseId(0); }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

}  // namespace

bool attaches_by_id(const kv::Operation& operation) {
  return std::visit(AttachesById(), operation);
}

std::string parse_lease(std::string_view word, kv::LeaseRef& lease) {
  if (!is_number(word)) {
    if (word.empty() || word.size() > grant::kLeaseNameBytesMax) {
      return fmt::format("ERR a lease is named by its id, or by its name of 1 to {} bytes",
                         grant::kLeaseNameBytesMax);
    }
    lease = {grant::LeaseId(0), word};
    return {};
  }
  const auto id = parse_integer(word);
  if (!id || *id < 1) return fmt::format("ERR {} is not the id of a lease", quoted(word));
  lease = {grant::LeaseId(static_cast<std::uint64_t>(*id)), {}};
  return {};
}

}  // namespace leasehold::server
