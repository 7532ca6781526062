// The protocol of Redis: replies come in the order of the requests.
#pragma once

#include <leasehold/bench/load/talk.h>

namespace leasehold::bench {

class RespTalk final : public Talk {
 public:
  void ask(const Request& request, std::uint64_t number, std::string& output) override;
  void take_output(std::string&) override {}
  Result<void> arrived(std::string_view bytes, Replies& replies) override;

 private:
  std::uint64_t replies_ = 0;  ///< so far
  std::string input_;          ///< the beginning of a reply
};

}  // namespace leasehold::bench
