#pragma once
#include <leasehold/base/result.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
namespace leasehold::tls {
struct NodeName {
  std::string cluster;
  std::uint64_t id;
  std::string uuid;
};
struct UserName {
  std::string cluster;
  std::string user;
};
using CertificateName = std::variant<NodeName, UserName>;
std::string to_uri(const CertificateName&);
Result<CertificateName> parse_uri(std::string_view);
}  // namespace leasehold::tls
