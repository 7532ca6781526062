// A dumb twin of the stores.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/store.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/twin_values.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv::testing {

/// What the rules say, in the shortest way.
class Twin {
 public:
  struct Cell {
    std::string bytes;
    std::uint64_t create_revision, mod_revision, version;
    /// Of the key's own lease; 0: the key lives forever.
    std::uint64_t lease_id = 0, stamp = 0;
    std::int64_t end_ms = 0;
    lease::Duration ttl{0};
  };

  std::string run(const Command& command) {
    if (const auto* transaction = std::get_if<Transaction>(&command)) return run(*transaction);
    const std::uint64_t before = revision;
    fixed_ = before + 1;
    made_.clear();
    const std::string reply = std::visit([this](const auto& c) { return run(c); }, command);
    revision = changed_ ? fixed_ : before;
    changed_ = false;
    return reply;
  }

  std::map<std::string, Cell> cells;
  std::uint64_t revision = 0;

 private:
  Cell& write(const std::string& key, const std::string& bytes) {
    changed_ = true;
    auto [at, fresh] = cells.try_emplace(key, Cell{bytes, fixed_, fixed_, 1});
    if (fresh) return at->second;
    at->second.bytes = bytes;
    at->second.mod_revision = fixed_;
    at->second.version += 1;
    return at->second;
  }
  static void for_ever(Cell& cell) {
    cell = Cell{cell.bytes, cell.create_revision, cell.mod_revision, cell.version};
  }
  void write_for(const std::string& key, const std::string& bytes, std::optional<KeyTime> ttl,
                 std::int64_t end_ms) {
    if (ttl && *ttl == KeyTime(0)) {
      if (cells.erase(key) > 0) changed_ = true;
      return;
    }
    Cell& cell = write(key, bytes);
    if (!ttl) return for_ever(cell);
    cell.ttl = *ttl;
    cell.end_ms = end_ms;
    cell.stamp = ++stamps_;
    if (cell.lease_id == 0) cell.lease_id = (std::uint64_t{1} << 63U) + cell.stamp;
  }

  std::string run(const Set& set) {
    const std::string key(set.key);
    const bool exists = cells.count(key) != 0;
    const bool writes = !(set.condition == SetCondition::nx && exists) &&
                        !(set.condition == SetCondition::xx && !exists);
    std::string reply = writes ? "OK" : "nil";
    if (set.get_old) reply = exists ? "\"" + cells.at(key).bytes + "\"" : "nil";
    if (writes && set.keep_lease) {
      write(key, std::string(set.value));
    } else if (writes) {
      write_for(key, std::string(set.value), set.ttl, set.end_ms);
    }
    return reply;
  }

  /// On no lease: the twin has none that clients hold.
  std::string run(const SetSequential& set) {
    std::string key = std::to_string(fixed_);
    while (key.size() < 20) key.insert(0, "0");
    key.insert(0, set.prefix);
    if (!made_.insert(key).second) {
      return "error 16: one transaction makes one sequential key of a prefix; nothing was done";
    }
    EXPECT_EQ(cells.count(key), 0U) << "no random command writes it by its name";
    write_for(key, std::string(set.value), std::nullopt, 0);
    return "\"" + key + "\"";
  }

  std::string run(const Del& del) {
    std::size_t gone = 0;
    for (const std::string_view key : del.keys) gone += cells.erase(std::string(key));
    if (gone > 0) changed_ = true;
    return std::to_string(gone);
  }

  std::string bytes_of(std::string_view key) const {
    const auto at = cells.find(std::string(key));
    return at == cells.end() ? "" : at->second.bytes;
  }
  std::string value_or_nil(std::string_view key) const {
    const auto at = cells.find(std::string(key));
    return at == cells.end() ? "nil" : "\"" + at->second.bytes + "\"";
  }

  std::string run(const Append& append) {
    write(std::string(append.key), bytes_of(append.key) + std::string(append.bytes));
    return std::to_string(bytes_of(append.key).size());
  }
  std::string run(const SetRange& range) {
    std::string bytes = bytes_of(range.key);
    if (range.bytes.empty()) return std::to_string(bytes.size());
    while (bytes.size() < range.offset + range.bytes.size()) bytes.push_back('\0');
    for (std::size_t i = 0; i < range.bytes.size(); ++i) bytes[range.offset + i] = range.bytes[i];
    write(std::string(range.key), bytes);
    return std::to_string(bytes.size());
  }
  std::string run(const GetDel& command) {
    const std::string reply = value_or_nil(command.key);
    if (cells.erase(std::string(command.key)) > 0) changed_ = true;
    return reply;
  }
  std::string run(const MSet& mset) {
    for (const auto& [key, value] : mset.pairs) {
      const auto at = cells.find(std::string(key));
      const bool is_equal = at != cells.end() && at->second.bytes == value;
      if (mset.condition == MSetCondition::none_exists && at != cells.end()) return "0";
      if (mset.condition == MSetCondition::all_equal && !is_equal) return "0";
    }
    for (const auto& [key, value] : mset.pairs) {
      write_for(std::string(key), std::string(value), mset.ttl, mset.end_ms);
    }
    if (mset.condition == MSetCondition::none) return "OK";
    return mset.condition == MSetCondition::none_exists ? "1" : std::to_string(mset.pairs.size());
  }
  std::string run(const ExpireKey& expire) {
    const auto at = cells.find(std::string(expire.key));
    const std::string none = expire.get ? value_or_nil(expire.key) : "0";
    if (at == cells.end() || (expire.value && at->second.bytes != *expire.value)) return none;
    const Cell before = at->second;
    const bool timed = before.lease_id != 0;
    lease::Duration left = before.ttl;
    if (expire.seen.stamp == before.stamp && expire.seen.left < left) left = expire.seen.left;
    const bool needs_time =
        expire.change != TimeChange::set || expire.condition == TimeCondition::xx ||
        expire.condition == TimeCondition::gt || expire.condition == TimeCondition::xx_lt;
    if (needs_time && !timed) return none;
    if (expire.condition == TimeCondition::nx && timed) return none;
    if (expire.condition == TimeCondition::gt && expire.ttl <= left) return none;
    const bool lower =
        expire.condition == TimeCondition::lt || expire.condition == TimeCondition::xx_lt;
    if (lower && timed && expire.ttl >= left) return none;
    if (expire.change == TimeChange::remove) {
      for_ever(write(std::string(expire.key), before.bytes));
    } else {
      const bool adds = expire.change == TimeChange::add;
      write_for(std::string(expire.key), before.bytes, adds ? expire.ttl + left : expire.ttl,
                expire.end_ms);
    }
    return expire.get ? "\"" + before.bytes + "\"" : "1";
  }
  std::string run(const DelEqual& del) {
    std::size_t gone = 0;
    for (const std::string_view key : del.keys) {
      const auto at = cells.find(std::string(key));
      if (at == cells.end() || at->second.bytes != del.value) continue;
      cells.erase(at);
      ++gone;
    }
    if (gone > 0) changed_ = true;
    return std::to_string(gone);
  }
  std::string run(const KeyLease& query) {
    const auto at = cells.find(std::string(query.key));
    if (at == cells.end() || (query.value && at->second.bytes != *query.value)) return "nil";
    const Cell& cell = at->second;
    return twin_time(cell.lease_id, cell.stamp, cell.ttl, cell.end_ms);
  }
  std::string run(const Rename& rename) {
    const std::string from(rename.from);
    const std::string to(rename.to);
    if (cells.count(from) == 0) return "error 7: no such key";
    if (rename.if_free && cells.count(to) != 0) return "0";
    if (from != to) {
      const Cell moved = cells.at(from);
      cells.erase(from);
      Cell& cell = write(to, moved.bytes);
      cell.lease_id = moved.lease_id;
      cell.stamp = moved.stamp;
      cell.ttl = moved.ttl;
      cell.end_ms = moved.end_ms;
    }
    return rename.if_free ? "1" : "OK";
  }
  std::string run(const Copy& copy) {
    const auto from = cells.find(std::string(copy.from));
    if (from == cells.end()) return "0";
    if (!copy.replace && cells.count(std::string(copy.to)) != 0) return "0";
    std::optional<KeyTime> left;
    if (from->second.lease_id != 0) {
      left = from->second.ttl;
      if (copy.seen.stamp == from->second.stamp && copy.seen.left < *left) left = copy.seen.left;
      if (*left < grant::kLeaseTtlMin) left = grant::kLeaseTtlMin;
    }
    write_for(std::string(copy.to), std::string(from->second.bytes), left, from->second.end_ms);
    return "1";
  }
  std::string run(const SetBit& set) {
    std::string bytes = bytes_of(set.key);
    const bool was = twin_bit(bytes, set.at);
    const bool writes = bytes.size() <= set.at / 8 || was != set.on;
    while (bytes.size() <= set.at / 8) bytes.push_back('\0');
    char& byte = bytes[set.at / 8];
    if (was != set.on) byte = static_cast<char>(byte ^ (1 << (7 - set.at % 8)));
    if (writes) write(std::string(set.key), bytes);
    return was ? "1" : "0";
  }
  std::string run(const GetBit& get) { return twin_bit(bytes_of(get.key), get.at) ? "1" : "0"; }
  std::string run(const BitCount& count) {
    return std::to_string(twin_bits(bytes_of(count.key), count));
  }
  std::string run(const Lcs& lcs) { return twin_common(bytes_of(lcs.a), bytes_of(lcs.b), lcs); }
  std::string run(const GetRange& range) {
    return "\"" + twin_part(bytes_of(range.key), range) + "\"";
  }
  std::string run(const Get& get) { return value_or_nil(get.key); }
  std::string run(const Exists& exists) {
    std::size_t count = 0;
    for (const std::string_view key : exists.keys) count += cells.count(std::string(key));
    return std::to_string(count);
  }
  std::string run(const MGet& mget) {
    std::string out;
    for (const std::string_view key : mget.keys) out += value_or_nil(key) + ",";
    return "[" + out + "]";
  }
  std::string run(const StrLen& query) { return std::to_string(bytes_of(query.key).size()); }
  std::string run(const Size&) { return std::to_string(cells.size()); }
  /// The twin has no sessions.
  template <class SessionCommand>
  std::string run(const SessionCommand&) {
    return "a command of sessions";
  }
  std::string run(const Transaction& transaction) {
    for (const Watched& watched : transaction.watched) {
      const auto at = cells.find(std::string(watched.key));
      if ((at == cells.end() ? 0 : at->second.mod_revision) != watched.mod_revision) return "nil";
    }
    fixed_ = revision + 1;
    made_.clear();
    std::string out;
    for (const Operation& operation : transaction.operations) {
      out += std::visit([this](const auto& o) { return run(o); }, operation) + ",";
    }
    if (changed_) revision = fixed_;
    changed_ = false;
    return "[" + out + "]";
  }

  std::uint64_t fixed_ = 0;  ///< the revision of what the command at hand writes
  bool changed_ = false;
  std::uint64_t stamps_ = 0;
  std::set<std::string> made_;  ///< by SetSequential, in the command at hand

  std::string run(const IncrByFloat& incr) {
    const std::string key(incr.key);
    const auto sum = twin_sum(cells.count(key) != 0 ? cells.at(key).bytes : "0", incr.delta);
    if (!sum) return "error 20: value is not a valid float";
    write(key, *sum);
    return "\"" + *sum + "\"";
  }
  std::string run(const IncrBy& incr) {
    const std::string key(incr.key);
    const auto base = twin_integer(cells.count(key) != 0 ? cells.at(key).bytes : "0");
    if (!base) return "error 4: value is not an integer or out of range";
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*base, incr.delta, &sum)) {
      return "error 5: increment or decrement would overflow";
    }
    write(key, std::to_string(sum));
    return std::to_string(sum);
  }
};

}  // namespace leasehold::kv::testing
