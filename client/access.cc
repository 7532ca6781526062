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

}  // namespace leasehold::client
