#include <leasehold/kv/command.h>
#include <leasehold/server/front/acting.h>

#include <algorithm>
#include <variant>

namespace leasehold::server {
namespace {

/// Whether a command takes, renews or revokes a lease of a client, attaches a key to one, or names
/// a session: these have owners. Or whether it names a token, for which users have a limit.
struct OwnsOrUses {
  bool operator()(const kv::Set& set) const {
    return set.lease != grant::LeaseId(0) || set.token != grant::FencingToken(0);
  }
  bool operator()(const kv::SetSequential& set) const { return set.lease != grant::LeaseId(0); }
  bool operator()(const kv::AttachKey& attach) const { return attach.lease != grant::LeaseId(0); }
  bool operator()(const kv::GrantLease&) const { return true; }
  bool operator()(const kv::RenewLeases&) const { return true; }
  bool operator()(const kv::RevokeLease&) const { return true; }
  bool operator()(const kv::WithNamedLease&) const { return true; }
  bool operator()(const kv::RenewNamed&) const { return true; }
  bool operator()(const kv::Transaction& transaction) const {
    return std::any_of(transaction.operations.begin(), transaction.operations.end(),
                       [this](const auto& operation) { return std::visit(*this, operation); });
  }
  bool operator()(const kv::Once&) const { return true; }
  bool operator()(const kv::OpenSession&) const { return true; }
  bool operator()(const kv::CloseSession&) const { return true; }
  bool operator()(const kv::TouchSession&) const { return true; }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

}  // namespace

bool acts_for_itself(const Rights& rights) {
  return !rights.unrestricted() || rights.user() != kDefaultUser;
}

Result<Bytes> in_name_of(const Rights& rights, Bytes command) {
  if (!acts_for_itself(rights)) return command;
  const auto decoded = kv::decode_command(command.view());
  if (!decoded || !std::visit(OwnsOrUses(), decoded.value())) return command;
  return kv::encode_command(
      kv::ActAs{rights.user(), rights.may_touch_leases_of_others(), command.view()});
}

}  // namespace leasehold::server
