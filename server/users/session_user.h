// Who a connection is.
#pragma once

#include <leasehold/server/users/accounts.h>
#include <leasehold/server/users/rights.h>

#include <cstdint>
#include <memory>
#include <string>

namespace leasehold::server {

/// The session's thread.
struct SessionUser {
  /// With `proven`: the user that a password or a certificate has proven. Else the default user, if
  /// it needs no password.
  std::string name{kDefaultUser};
  bool proven = false;
  std::uint64_t created = 0;  ///< of the proven user: one that is made again is another
  /// What has proven the user: the login ends with this password. None: a certificate has.
  StoredPassword password;
  /// Null: nobody; then only AUTH, HELLO, RESET and QUIT run.
  std::shared_ptr<const Rights> rights;
  /// Session::newest_users() when `rights` were looked up; 0: not yet.
  std::uint64_t seen = 0;
  /// rights->unrestricted(): then there is nothing to check.
  bool unrestricted = false;
  /// A password is being checked, or the newest users are read: no further command is taken.
  bool checking = false;
  /// They could not be read: the next command is refused.
  bool unlearned = false;
  /// The rights under which the first key was watched, or the first command queued, for EXEC.
  std::shared_ptr<const Rights> queued_under;
};

}  // namespace leasehold::server
