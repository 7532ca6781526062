#include <leasehold/server/front/gate.h>
#include <leasehold/server/front/words.h>

#include <algorithm>

namespace leasehold::server {
namespace {

constexpr std::chrono::seconds kBurst{2};

}  // namespace

const char* const kProtectedModeRefusal =
    "DENIED Leasehold is running in protected mode: the default user has no password, so only "
    "connections from this machine are taken. Give the default user a password, or start the node "
    "with --protected-mode no if its network lets in only those who may do everything";

const char* const kMemoryUsedUp =
    "ERR the memory for requests and replies of clients is used up: try again later, or raise "
    "--client-memory-max of this node";

bool default_user_is_open(ServerState& state, const kv::Users& users) {
  const auto rights = state.accounts.find(users, kDefaultUser);
  return rights != nullptr && rights->on() && rights->rules().nopass;
}

bool is_loopback(const asio::ip::address& address) {
  if (address.is_loopback()) return true;
  return address.is_v6() && address.to_v6().is_v4_mapped() &&
         asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
}

bool is_protected_from(ServerState& state, const kv::Users& users, const asio::ip::address& address,
                       ClientTls::Mode tls) {
  if (!state.options.protected_mode || is_loopback(address)) return false;
  // A stranger has no certificate, so it does not come to the default user.
  const bool certified = tls == ClientTls::Mode::on &&
                         state.options.client_certificates == tls::ClientCertificates::required;
  return !certified && default_user_is_open(state, users);
}

bool is_http(const Arguments& args, bool line) {
  if (args.empty()) return false;
  // No command has one of these names.
  if (equals_ignoring_case(args[0], "post") || equals_ignoring_case(args[0], "host:")) return true;
  constexpr std::string_view kVersion = "http/";
  return line && equals_ignoring_case(args.back().substr(0, kVersion.size()), kVersion);
}

std::chrono::nanoseconds ConnectionRate::take(std::chrono::nanoseconds now) {
  if (per_second_ == 0) return {};
  const std::chrono::nanoseconds each =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / static_cast<std::int64_t>(per_second_);
  full_at_ = std::max(full_at_, now) + each;
  return std::max(std::chrono::nanoseconds(0), full_at_ - now - kBurst);
}

}  // namespace leasehold::server
