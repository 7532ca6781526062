#include <leasehold/bench/load/resp_talk.h>
#include <leasehold/bench/workload.h>

#include <fmt/format.h>

#include <iterator>

namespace leasehold::bench {
namespace {

void append_bulk(std::string& into, std::string_view bytes) {
  fmt::format_to(std::back_inserter(into), "${}\r\n", bytes.size());
  into.append(bytes);
  into += "\r\n";
}

}  // namespace

void RespTalk::ask(const Request& request, std::uint64_t, std::string& output) {
  if (request.kind == OperationKind::scan) {
    fmt::format_to(std::back_inserter(output), "*{}\r\n$4\r\nMGET\r\n", request.count + 1);
    for (std::uint64_t i = 0; i < request.count; ++i) {
      append_bulk(output, key_name(request.key + i));
    }
  } else if (request.kind == OperationKind::read) {
    output += "*2\r\n$3\r\nGET\r\n";
    append_bulk(output, key_name(request.key));
  } else {
    output += "*3\r\n$3\r\nSET\r\n";
    append_bulk(output, key_name(request.key));
    append_bulk(output, request.value);
  }
}

Result<void> RespTalk::arrived(std::string_view bytes, Replies& replies) {
  input_.append(bytes);
  std::size_t at = 0;
  while (at < input_.size()) {
    const auto reply = first_reply(std::string_view(input_).substr(at));
    if (!reply) return Error{ErrorCode::malformed, "malformed reply"};
    if (reply.value().kind == ReplyView::Kind::incomplete) break;
    at += reply.value().length;
    if (!replies.replied(replies_++, reply.value())) {
      return Error{ErrorCode::malformed, "reply without a request"};
    }
  }
  input_.erase(0, at);
  return {};
}

}  // namespace leasehold::bench
