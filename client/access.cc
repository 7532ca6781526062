#include <leasehold/client/access.h>
#include <leasehold/tls/context.h>

#include <utility>

namespace leasehold::client {

Result<Access> Access::by_tls(const Files& files) {
  auto context = tls::Context::be_client({files.certificate, files.key, files.authority, {}});
  if (!context.ok()) return context.error();
  Access access;
  access.tls_ = std::move(context).value();
  return access;
}

Access Access::in_group(std::size_t number) const {
  Access other = *this;
  other.group_ = number;
  return other;
}

Access Access::in_group_of(std::string key) const {
  Access other = *this;
  other.key_of_group_ = std::move(key);
  return other;
}

}  // namespace leasehold::client
