#include <leasehold/base/assert.h>
#include <leasehold/kv/bits.h>
#include <leasehold/kv/common_part.h>
#include <leasehold/kv/query.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::kv {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

Reply value_or_nil(const std::optional<Value>& found) {
  if (!found) return Nil{};
  return ValueReply{found->bytes};
}

Reply all_values(const Found& found) {
  ArrayReply array;
  array.items.reserve(found.size());
  for (const auto& value : found) array.items.push_back(encode_reply(value_or_nil(value)));
  return array;
}

/// From the first to the last one, of so many; negative numbers are counted from the end. None: an
/// empty part.
std::optional<std::pair<std::size_t, std::size_t>> ends(std::int64_t start, std::int64_t end,
                                                        std::size_t of) {
  const auto length = static_cast<std::int64_t>(of);
  const auto from_end = [length](std::int64_t at) {
    return at < 0 ? std::max<std::int64_t>(at + length, 0) : at;
  };
  // Both ends before the beginning, the wrong way round: even the first one is not meant.
  if (start < 0 && end < 0 && start > end) return std::nullopt;
  const std::int64_t first = from_end(start);
  const std::int64_t last = std::min(from_end(end), length - 1);
  if (first > last) return std::nullopt;
  return std::pair(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
}

Reply part(const GetRange& range, const std::optional<Value>& found) {
  const auto part = found ? ends(range.start, range.end, found->bytes.size()) : std::nullopt;
  if (!part) return ValueReply{};
  return ValueReply{found->bytes.slice(part->first, part->second - part->first + 1)};
}

Reply count_bits(const BitCount& query, const std::optional<Value>& found) {
  const std::size_t scale = query.bits ? 8 : 1;
  const auto part =
      found ? ends(query.start, query.end, found->bytes.size() * scale) : std::nullopt;
  if (!part) return integer(0);
  const std::size_t first = query.bits ? part->first : part->first * 8;
  const std::size_t last = query.bits ? part->second : part->second * 8 + 7;
  return integer(bits_set(found->bytes.view(), first, last));
}

std::string_view bytes_of(const std::optional<Value>& found) {
  return found ? found->bytes.view() : std::string_view();
}

Reply common(const Lcs& query, const Found& found) {
  const auto number = [](std::uint64_t value) { return encode_reply(integer(value)); };
  const bool with_text = query.wanted != LcsWanted::length;
  const CommonPart part = common_part(bytes_of(found.at(0)), bytes_of(found.at(1)), with_text);
  if (query.wanted == LcsWanted::length) return integer(part.length);
  if (query.wanted == LcsWanted::text) return ValueReply{Bytes(std::string_view(part.text))};
  ArrayReply runs;
  for (const CommonRun& run : part.runs) {
    if (run.length() < query.least) continue;
    ArrayReply item{{encode_reply(ArrayReply{{number(run.a_first), number(run.a_last)}}),
                     encode_reply(ArrayReply{{number(run.b_first), number(run.b_last)}})}};
    if (query.lengths) item.items.push_back(number(run.length()));
    runs.items.push_back(encode_reply(item));
  }
  return ArrayReply{{encode_reply(runs), number(part.length)}};
}

ArrayReply lease_fields(const grant::LeaseTable::Lease& lease) {
  const auto value = [](std::string_view text) { return encode_reply(ValueReply{Bytes(text)}); };
  return {{encode_reply(integer(lease.id.value())), encode_reply(integer(lease.token.value())),
           encode_reply(Integer{lease.ttl / std::chrono::milliseconds(1)}), value(lease.name),
           value(lease.holder)}};
}

/// The items after these, and after the keys if they are included.
void append_terms(const grant::LeaseTable::Lease& lease, ArrayReply& array) {
  const grant::LeaseTerms& terms = lease.terms;
  for (const std::uint64_t number :
       {std::uint64_t{terms.grace.count()}, std::uint64_t{terms.soft ? 1U : 0U},
        std::uint64_t{terms.delay.count()}, std::uint64_t{lease.delayed ? 1U : 0U}}) {
    array.items.push_back(encode_reply(integer(number)));
  }
  array.items.push_back(encode_reply(Integer{lease.asked_at_ms}));
}

}  // namespace

Reply answer(const FoundLease& found) {
  if (found.key_bytes > kReplyBytesMax) {
    return ErrorReply{
        ErrorKind::limit,
        fmt::format("the keys of the lease have more than {} bytes together", kReplyBytesMax)};
  }
  ArrayReply keys;
  for (const std::string& key : found.keys) {
    keys.items.push_back(encode_reply(ValueReply{Bytes(key)}));
  }
  ArrayReply array = lease_fields(found.lease);
  array.items.push_back(encode_reply(keys));
  append_terms(found.lease, array);
  return array;
}

Reply answer(const std::vector<grant::LeaseTable::Lease>& leases) {
  ArrayReply array;
  for (const auto& lease : leases) {
    // They come behind all others.
    if (grant::is_of_key(lease.id)) break;
    ArrayReply fields = lease_fields(lease);
    append_terms(lease, fields);
    array.items.push_back(encode_reply(fields));
  }
  return array;
}

bool shown(const grant::LeaseTable::Lease& lease, const LeaseInfo& query) {
  if (grant::is_of_key(lease.id)) return false;
  // During its lock delay the name has no holder.
  return !lease.delayed || query.id != grant::LeaseId(0);
}

bool has_value(const std::optional<Value>& found, const KeyLease& query) {
  return found && (!query.value || found->bytes.view() == *query.value);
}

Reply key_lease(const grant::LeaseTable::Lease* lease) {
  if (lease == nullptr) return integer(0);
  ArrayReply array{{encode_reply(integer(lease->id.value())), encode_reply(integer(lease->stamp)),
                    encode_reply(Integer{lease->ttl.count()})}};
  // That of a client's lease is when it was asked for.
  if (grant::is_of_key(lease->id) && lease->asked_at_ms != 0) {
    array.items.push_back(encode_reply(Integer{lease->asked_at_ms}));
  }
  return array;
}

bool is_query(const Operation& operation) {
  return std::visit(
      Overloaded{[](const Get&) { return true; }, [](const Exists&) { return true; },
                 [](const MGet&) { return true; }, [](const StrLen&) { return true; },
                 [](const GetRange&) { return true; }, [](const Size&) { return true; },
                 [](const LeaseInfo&) { return true; }, [](const LeaseList&) { return true; },
                 [](const KeyLease&) { return true; }, [](const GetBit&) { return true; },
                 [](const BitCount&) { return true; }, [](const Lcs&) { return true; },
                 [](const auto&) { return false; }},
      operation);
}

std::vector<std::string_view> keys_of(const Operation& query) {
  using Keys = std::vector<std::string_view>;
  return std::visit(
      Overloaded{[](const Get& q) { return Keys{q.key}; }, [](const Exists& q) { return q.keys; },
                 [](const MGet& q) { return q.keys; }, [](const StrLen& q) { return Keys{q.key}; },
                 [](const GetRange& q) { return Keys{q.key}; },
                 [](const GetBit& q) { return Keys{q.key}; },
                 [](const BitCount& q) { return Keys{q.key}; },
                 [](const Lcs& q) {
                   return Keys{q.a, q.b};
                 },
                 [](const auto&) { return Keys{}; }},
      query);
}

std::uint64_t steps_of(const Operation& query, const Found& found) {
  if (std::holds_alternative<Lcs>(query)) {
    return common_part_steps(bytes_of(found.at(0)), bytes_of(found.at(1)));
  }
  if (!std::holds_alternative<BitCount>(query)) return 0;
  return 1 + (found.at(0) ? found[0]->bytes.size() / 64 : 0);
}

ErrorReply too_many_steps() {
  return ErrorReply{ErrorKind::limit,
                    fmt::format("nothing was done: it would take more than {} steps; give shorter "
                                "values, or fewer of them at once",
                                kStepsMax)};
}

Reply answer(const Operation& query, const Found& found, std::uint64_t size) {
  return std::visit(
      Overloaded{
          [&](const Get&) { return value_or_nil(found.at(0)); },
          [&](const Exists&) {
            return integer(static_cast<std::size_t>(std::count_if(
                found.begin(), found.end(), [](const auto& value) { return value.has_value(); })));
          },
          [&](const MGet&) { return all_values(found); },
          [&](const StrLen&) { return integer(found.at(0) ? found[0]->bytes.size() : 0); },
          [&](const GetRange& q) { return part(q, found.at(0)); },
          [&](const GetBit& q) {
            return integer(found.at(0) && bit_of(found[0]->bytes.view(), q.at) ? 1 : 0);
          },
          [&](const BitCount& q) { return count_bits(q, found.at(0)); },
          [&](const Lcs& q) { return common(q, found); },
          [&](const Size&) { return integer(size); },
          [](const auto&) -> Reply { LEASEHOLD_UNREACHABLE(); }},
      query);
}

namespace {

/// A key and its lease are two reads. If the lease no longer exists, the key was detached or
/// deleted since the first read: a second read finds something newer.
Result<Reply> find_key_lease(const KeyLease& query, const Store& store) {
  for (;;) {
    const auto value = store.get(query.key);
    if (!value) return value.error();
    if (!has_value(value.value(), query)) return Reply(Nil{});
    const grant::LeaseId id = value.value()->lease;
    if (id == grant::LeaseId(0)) return key_lease(nullptr);
    const auto found = store.leases_after(grant::LeaseId(id.value() - 1), 1);
    if (!found) return found.error();
    if (!found.value().empty() && found.value()[0].id == id) return key_lease(&found.value()[0]);
  }
}

/// A key that is named several times counts as often, and is looked at once.
Result<Reply> count_existing(std::vector<std::string_view> keys, const Store& store,
                             std::size_t& loaded) {
  std::sort(keys.begin(), keys.end());
  std::vector<std::string_view> each = keys;
  each.erase(std::unique(each.begin(), each.end()), each.end());
  const auto found = store.get_all(each, Load::revisions);
  if (!found) return found.error();
  std::size_t count = 0;
  auto at = keys.begin();
  for (std::size_t i = 0; i < each.size(); ++i) {
    const auto next = std::upper_bound(at, keys.end(), each[i]);
    if (const auto& value = found.value()[i]) {
      count += static_cast<std::size_t>(next - at);
      loaded += value->left_out;
    }
    at = next;
  }
  return integer(count);
}

Result<Reply> find_length(std::string_view key, bool exists, const Store& store,
                          std::size_t& loaded) {
  const auto length = store.length(key);
  if (!length) return length.error();
  loaded = length.value().value_or(0);
  if (exists) return integer(length.value() ? 1U : 0U);
  return integer(loaded);
}

Result<Reply> find_lease(const LeaseInfo& query, const Store& store) {
  const auto found = store.find_lease(query.id, query.name);
  if (!found) return found.error();
  if (!found.value() || !shown(found.value()->lease, query)) return Reply(Nil{});
  return answer(*found.value());
}

Result<Reply> list_leases(const LeaseList& query, const Store& store) {
  const auto found = store.leases_after(query.after, query.count);
  if (!found) return found.error();
  return answer(found.value());
}

Result<Reply> find_values(const Operation& query, const std::vector<std::string_view>& keys,
                          const Store& store, std::size_t& loaded) {
  Found found;
  if (keys.size() == 1) {
    auto one = store.get(keys[0]);
    if (!one) return one.error();
    found.push_back(std::move(one).value());
  } else if (!keys.empty()) {
    auto all = store.get_all(keys, Load::whole);
    if (!all) return all.error();
    found = std::move(all).value();
  }
  for (const auto& value : found) loaded += value ? value->bytes.size() : 0;
  if (steps_of(query, found) > kStepsMax) return Reply(too_many_steps());
  return answer(query, found, store.size());
}

}  // namespace

Result<Reply> query(const Operation& query, const Store& store, std::size_t* loaded) {
  std::size_t unwanted = 0;
  std::size_t& bytes = loaded == nullptr ? unwanted : *loaded;
  bytes = 0;
  if (const auto* time = std::get_if<KeyLease>(&query)) return find_key_lease(*time, store);
  if (const auto* info = std::get_if<LeaseInfo>(&query)) return find_lease(*info, store);
  if (const auto* list = std::get_if<LeaseList>(&query)) return list_leases(*list, store);
  const std::vector<std::string_view> keys = keys_of(query);
  const bool exists = std::holds_alternative<Exists>(query);
  if (keys.size() == 1 && (exists || std::holds_alternative<StrLen>(query))) {
    return find_length(keys[0], exists, store, bytes);
  }
  auto reply = exists ? count_existing(keys, store, bytes) : find_values(query, keys, store, bytes);
  if (!reply && reply.error().code == ErrorCode::invalid_argument) {
    return Reply(ErrorReply{ErrorKind::limit, reply.error().message});
  }
  return reply;
}

}  // namespace leasehold::kv
