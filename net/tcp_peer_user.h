// Whose process is at the other end of a loopback connection. Not for other rooms.
#pragma once

namespace leasehold::net {

/// Whether the other end of `socket`, which is connected over loopback, belongs to a process of
/// this user, or of root. The kernel says so (sock_diag(7)). A socket whose process has let it go
/// proves nothing. True as well where the kernel cannot say: it has no such interface.
bool same_user_at_other_end(int socket);

}  // namespace leasehold::net
