// One reply of those of many groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::server {

/// Of numbers the sum, of lists one list, of values the first that is there. The first error is the
/// whole reply.
class JoinedReply {
 public:
  /// The whole reply of the next group, in RESP.
  void add(std::string_view reply);
  bool empty() const { return kind_ == '\0'; }  ///< nothing was added
  bool failed() const { return kind_ == '-'; }
  std::size_t bytes() const { return body_.size(); }
  std::string take();

 private:
  char kind_ = '\0';        ///< the first byte of the reply
  std::int64_t count_ = 0;  ///< the sum, or the items of the list
  std::string body_;        ///< the items, or else the reply
};

}  // namespace leasehold::server
