#include <leasehold/tls/socket_bio.h>

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>

namespace leasehold::tls {

namespace {

int handle_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

bool comes_later(int code) {
  return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

int write_some(BIO* bio, const char* bytes, std::size_t size, std::size_t* taken) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(handle_of(bio), bytes, size, MSG_NOSIGNAL);
  *taken = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (sent > 0) return 1;
  if (sent < 0 && comes_later(errno)) BIO_set_retry_write(bio);
  return 0;
}

int read_some(BIO* bio, char* to, std::size_t size, std::size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t received = ::recv(handle_of(bio), to, size, 0);
  *got = received > 0 ? static_cast<std::size_t>(received) : 0;
  if (received > 0) return 1;
  if (received < 0 && comes_later(errno)) BIO_set_retry_read(bio);
  if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return 0;
}

long control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* method() {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* fresh =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "leasehold socket");
    if (fresh == nullptr) return fresh;
    BIO_meth_set_write_ex(fresh, write_some);
    BIO_meth_set_read_ex(fresh, read_some);
    BIO_meth_set_ctrl(fresh, control);
    return fresh;
  }();
  return made;
}

}  // namespace

BIO* make_socket_bio(int socket) {
  if (method() == nullptr) return nullptr;
  BIO* bio = BIO_new(method());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace leasehold::tls
