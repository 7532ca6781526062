// ACL SETUSER: a change of one user, proposed to the group.
#pragma once

#include <leasehold/server/front/session.h>

#include <functional>
#include <string>
#include <vector>

namespace leasehold::server {

/// Changes the user by the rules, one after the other, as the newest record of it allows: if
/// another change comes between, the rules are applied to that one's result. `done` gets the reply,
/// once, on any thread. The words of the rules are wiped.
void change_user(const Session::Context& context, std::string user, std::vector<std::string> rules,
                 std::function<void(std::string)> done);

}  // namespace leasehold::server
