// The bytes of replies, for scripted servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::client {

inline std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
inline std::string integer(std::uint64_t number) {
  return ":" + std::to_string(number) + "\r\n";
}
inline std::string array(const std::vector<std::string>& items, char type = '*') {
  std::string out = type + std::to_string(items.size()) + "\r\n";
  for (const std::string& item : items) out += item;
  return out;
}
/// A key as LEASEHOLD RANGE lists it.
inline std::string row(const std::string& key, std::uint64_t revision, std::uint64_t create,
                       std::uint64_t lease, const std::string& value) {
  return array(
      {bulk(key), integer(revision), integer(create), integer(1), integer(lease), bulk(value)});
}

}  // namespace leasehold::client
