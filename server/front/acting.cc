#include <leasehold/kv/command.h>
#include <leasehold/server/front/acting.h>
#include <leasehold/server/users/password.h>

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace leasehold::server {
namespace {

/// Between a user's name and when it was made.
constexpr char kBehindUser = '#';

/// Between the beginning of a long user's name and the hash of the whole name.
constexpr char kBehindCut = '~';
/// 128 bits: nobody finds two names with one hash.
constexpr std::size_t kHashDigits = 32;

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

std::string owner_in(const Rights& rights, bool has_users) {
  if (has_users) return std::string(rights.user());
  const std::string_view user = rights.user();
  const std::string birth = fmt::format("{}{}", kBehindUser, rights.created());
  if (user.size() + birth.size() <= kv::kUserNameBytesMax) return std::string(user) + birth;
  // An owner has no more room than a user's name: the hash stands for the part that is cut off.
  const std::string hash = kBehindCut + sha256_hex(user).substr(0, kHashDigits);
  const std::size_t room = kv::kUserNameBytesMax - birth.size() - hash.size();
  return std::string(user.substr(0, room)) + hash + birth;
}

std::string_view user_of(std::string_view owner, bool has_users) {
  return has_users ? owner : owner.substr(0, owner.rfind(kBehindUser));
}

Result<Bytes> in_name_of(const Rights& rights, bool has_users, Bytes command) {
  if (!acts_for_itself(rights)) return command;
  const auto decoded = kv::decode_command(command.view());
  if (!decoded || !std::visit(OwnsOrUses(), decoded.value())) return command;
  const std::string owner = owner_in(rights, has_users);
  return kv::encode_command(kv::ActAs{owner, rights.may_touch_leases_of_others(), command.view()});
}

}  // namespace leasehold::server
