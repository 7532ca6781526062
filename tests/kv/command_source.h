// Random commands for the stores and their twin.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/kv/command.h>
#include <leasehold/tests/kv/store_support.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv::testing {

/// Random commands over few keys, so that they meet.
class CommandSource {
 public:
  explicit CommandSource(std::uint64_t seed) : random_(seed) {}

  Bytes next() {
    keys_.clear();
    if (random_.chance(1, 5)) {
      values_.clear();
      Transaction transaction;
      const std::uint64_t count = random_.below(6);
      for (std::uint64_t i = 0; i < count; ++i) transaction.operations.push_back(next_operation());
      if (random_.chance(1, 3)) transaction.watched.push_back({draw_key(), random_.below(3)});
      return encoded(transaction);
    }
    if (random_.chance(1, 2)) {
      values_.clear();
      const Operation operation = next_operation();
      return std::visit([](const auto& o) { return encoded(Command(o)); }, operation);
    }
    const std::uint64_t kind = random_.below(10);
    if (kind < 5) {
      const std::string& key = draw_key();
      value_ = draw_value();
      Set set{key, value_, static_cast<SetCondition>(random_.below(3)), random_.chance(1, 3)};
      set.ttl = draw_ttl();
      set.end_ms = draw_end(set.ttl);
      set.keep_lease = !set.ttl && random_.chance(1, 4);
      return encoded(set);
    }
    if (kind < 7) {
      Del del;
      const std::uint64_t count = random_.below(4) + 1;
      for (std::uint64_t i = 0; i < count; ++i) draw_key();
      for (const std::string& key : keys_) del.keys.push_back(key);
      return encoded(del);
    }
    const std::string& key = draw_key();
    const auto delta =
        random_.chance(1, 8) ? static_cast<std::int64_t>(random_.next()) : random_.between(-5, 6);
    return encoded(IncrBy{key, delta});
  }

  Random& random() { return random_; }

 private:
  /// With views into keys_ and values_.
  Operation next_operation() {
    const std::string& key = draw_key();
    switch (random_.below(23)) {
      case 0: return Append{key, keep(std::string(random_.below(5), 'a'))};
      case 1:
        return SetRange{static_cast<std::uint32_t>(random_.below(20)), key,
                        keep(std::string(random_.below(4), 'r'))};
      case 2: return GetDel{key};
      case 3: return mset(key);
      case 4: return Rename{random_.chance(1, 2), key, draw_key()};
      case 5: return Get{key};
      case 6: return Exists{{key, draw_key(), key}};
      case 7: return MGet{{key, draw_key()}};
      case 8: return StrLen{key};
      case 9: return GetRange{random_.between(-9, 9), random_.between(-9, 9), key};
      case 10: return Del{{key, draw_key(), key}};
      case 11: return DelEqual{keep(draw_value()), {key, draw_key(), key}};
      case 12:
      case 13: return expire(key);
      case 14:
        if (random_.chance(1, 2)) return KeyLease{key};
        return KeyLease{key, keep(draw_value())};
      case 15: return SetSequential{random_.chance(1, 2) ? "key" : "", keep(draw_value())};
      case 16: return IncrByFloat{key, keep(draw_fraction())};
      case 17: return copy(key);
      case 18:
        return SetBit{static_cast<std::uint32_t>(random_.below(200)), random_.chance(1, 2), key};
      case 19: return GetBit{static_cast<std::uint32_t>(random_.below(200)), key};
      case 20:
        return BitCount{random_.between(-90, 90), random_.between(-90, 90), random_.chance(1, 2),
                        key};
      case 21:
        return Lcs{static_cast<LcsWanted>(random_.below(3)), random_.chance(1, 2), random_.below(3),
                   key, draw_key()};
      default: return Size{};
    }
  }
  std::string draw_fraction() {
    std::string text = std::to_string(random_.between(-50, 51));
    if (random_.chance(2, 3)) text += "." + std::to_string(random_.below(1000));
    return text;
  }
  Copy copy(const std::string& key) {
    Copy out;
    out.replace = random_.chance(1, 2);
    out.from = key;
    do {
      out.to = draw_key();
    } while (out.to == out.from);
    if (random_.chance(1, 2)) {
      out.seen = {random_.below(60) + 1, std::chrono::milliseconds(random_.below(5))};
    }
    return out;
  }
  ExpireKey expire(const std::string& key) {
    ExpireKey out;
    out.key = key;
    out.change = static_cast<TimeChange>(random_.below(3));
    out.get = random_.chance(1, 4);
    if (random_.chance(1, 3)) out.value = keep(draw_value());
    if (out.change != TimeChange::remove) out.ttl = draw_ttl().value_or(KeyTime(0));
    if (out.change == TimeChange::set) {
      out.condition = static_cast<TimeCondition>(random_.below(6));
      out.end_ms = draw_end(out.ttl);
    }
    if (out.looks_at_time())
      out.seen = {random_.below(60), std::chrono::milliseconds(random_.below(5))};
    return out;
  }
  MSet mset(const std::string& key) {
    MSet out{static_cast<MSetCondition>(random_.below(3)),
             {{key, keep(draw_value())}, {draw_key(), "m"}},
             draw_ttl()};
    out.end_ms = draw_end(out.ttl);
    return out;
  }
  std::int64_t draw_end(std::optional<KeyTime> ttl) {
    const bool given = ttl && *ttl > KeyTime(0) && random_.chance(1, 2);
    return given ? random_.between(1, 1000) : 0;
  }
  std::optional<KeyTime> draw_ttl() {
    if (random_.chance(2, 3)) return std::nullopt;
    return std::chrono::milliseconds(random_.below(6));
  }
  const std::string& keep(std::string value) {
    values_.push_back(std::move(value));
    return values_.back();
  }
  const std::string& draw_key() {
    keys_.push_back("key" + std::to_string(random_.below(24)));
    return keys_.back();
  }
  std::string draw_value() {
    static const std::vector<std::string> odd = {"",
                                                 "0",
                                                 "-0",
                                                 "00",
                                                 "+1",
                                                 " 1",
                                                 "1 ",
                                                 "-",
                                                 "x",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "-9223372036854775808",
                                                 "-9223372036854775809",
                                                 "1.5",
                                                 "-7"};
    if (random_.chance(1, 2)) return odd[random_.below(odd.size())];
    return std::string(random_.below(300), 'v');
  }

  Random random_;
  std::deque<std::string> keys_;  ///< a deque: what refers to one stays good
  std::deque<std::string> values_;
  std::string value_;
};

}  // namespace leasehold::kv::testing
