// A socket as OpenSSL reads and writes it. Its own one raises SIGPIPE. Not for other rooms.
#pragma once

#include <openssl/bio.h>

namespace leasehold::tls {

/// Does not own the socket, which does not block. Null: no memory.
BIO* make_socket_bio(int socket);

}  // namespace leasehold::tls
