#include <leasehold/server/front/joined_reply.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/words.h>

#include <utility>

namespace leasehold::server {
namespace {

/// Of the replies of all groups together.
constexpr std::size_t kPartsBytesMax = std::size_t{64} << 20U;

/// Of a number or a list, the first line without its type.
std::int64_t count_of(std::string_view reply) {
  return parse_integer(reply.substr(1, reply.find('\r') - 1)).value_or(0);
}

bool is_null(std::string_view reply) {
  return reply[0] == '_' || reply.substr(0, 2) == "$-";
}

}  // namespace

void JoinedReply::add(std::string_view reply) {
  if (failed()) return;
  const bool first = empty();
  const char kind = reply[0];
  if (kind == '-') {
    kind_ = kind;
    body_ = reply;
  } else if (kind == ':' || kind == '*') {
    kind_ = kind;
    count_ += count_of(reply);
    if (kind == ':') return;
    const std::string_view items = reply.substr(reply.find('\n') + 1);
    if (body_.size() + items.size() <= kPartsBytesMax) {
      body_.append(items);
      return;
    }
    kind_ = '-';
    body_.clear();
    append_error(body_, "ERR the names of all keys are too long together: use SCAN");
  } else if (first || is_null(body_)) {
    kind_ = kind;
    body_ = reply;
  }
}

std::string JoinedReply::take() {
  if (kind_ != ':' && kind_ != '*') return std::move(body_);
  std::string out;
  if (kind_ == ':') {
    append_integer(out, count_);
  } else {
    append_array(out, static_cast<std::size_t>(count_));
    out.append(body_);
    body_ = std::string();
  }
  return out;
}

}  // namespace leasehold::server
