// The words of `leasehold member`.
#pragma once

#include <leasehold/client/resp_client.h>

#include <string>
#include <vector>

namespace leasehold::cli {

struct MemberOptions {
  std::string action;
  std::vector<std::string> words;
  std::vector<std::string> servers;
  client::RespClient::Timeout timeout{10'000};
  client::RespClient::Timeout catch_up{600'000};
  std::string expect;  ///< of the first step
  bool learner = false;
  bool witness = false;
  bool json = false;
};

/// "4" of "4" and of "4=10.0.0.4:7101".
inline std::string id_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

/// Whether the words are those of the action. False: `wrong` says why not.
bool fits_action(const MemberOptions& options, std::string& wrong);

}  // namespace leasehold::cli
