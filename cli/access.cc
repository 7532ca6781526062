#include <leasehold/cli/access.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace leasehold::cli {

namespace {

client::Access& chosen() {
  static client::Access access;
  return access;
}

void fill_from_environment(std::string& file, const char* variable) {
  const char* const text = std::getenv(variable);
  if (file.empty() && text != nullptr) file = text;
}

}  // namespace

Result<void> set_access(client::Access::Files flags) {
  fill_from_environment(flags.authority, "LEASEHOLD_TLS_CA");
  fill_from_environment(flags.certificate, "LEASEHOLD_TLS_CERT");
  fill_from_environment(flags.key, "LEASEHOLD_TLS_KEY");
  if (flags.authority.empty()) {
    if (flags.certificate.empty() && flags.key.empty()) return {};
    return Error{ErrorCode::invalid_argument,
                 "--tls-cert and --tls-key need --tls-ca, which turns TLS on"};
  }
  auto access = client::Access::by_tls(flags);
  if (!access) return access.error();
  chosen() = std::move(access).value().in_group(chosen().group());
  return {};
}

void set_group(std::size_t number) {
  chosen() = chosen().in_group(number);
}

void set_group_of(const std::string& key) {
  chosen() = chosen().in_group_of(key);
}

const client::Access& access() {
  return chosen();
}

}  // namespace leasehold::cli
