// A reply that is a map, of which the number of entries is known at its end only.
#pragma once

#include <leasehold/server/front/resp.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::server {

class MapReply {
 public:
  void add(std::string_view key, std::string_view value) {
    append_bulk(body_, key);
    append_bulk(body_, value);
    ++count_;
  }
  void add(std::string_view key, std::int64_t value) {
    append_bulk(body_, key);
    append_integer(body_, value);
    ++count_;
  }
  void finish(std::string& out, Protocol protocol) const {
    append_map(out, count_, protocol);
    out.append(body_);
  }

 private:
  std::string body_;
  std::size_t count_ = 0;
};

}  // namespace leasehold::server
