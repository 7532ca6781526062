#include <leasehold/tls/stream.h>

#include <leasehold/base/assert.h>
#include <leasehold/tls/openssl.h>
#include <leasehold/tls/session_end.h>
#include <leasehold/tls/socket_bio.h>

#include <fmt/format.h>

#include <openssl/x509v3.h>

#include <utility>

namespace leasehold::tls {

namespace {

/// OpenSSL goes on reading until it has bytes for the protocol above. So messages of TLS alone,
/// such as updates of keys, would hold the thread for as long as they come.
constexpr std::size_t kMessagesInHandshakeMax = 512;
/// Between two reads or writes of bytes.
constexpr std::size_t kMessagesWithoutBytesMax = 64;

void count_message(int sent, int, int type, const void*, std::size_t, SSL* ssl, void*) {
  const bool counts = type == SSL3_RT_HEADER || type == SSL3_RT_HANDSHAKE;
  if (sent == 0 && counts) Stream::of(ssl).note_message();
}

/// OpenSSL wants this thread's errors to be gone before each call. To look whether there are any
/// costs a fraction of clearing them.
void clear_errors() {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

bool is_ip_address(const std::string& host) {
  using Address = std::unique_ptr<ASN1_OCTET_STRING, FreeBy<ASN1_OCTET_STRING_free>>;
  const bool is = Address(a2i_IPADDRESS(host.c_str())) != nullptr;
  ERR_clear_error();
  return is;
}

}  // namespace

SessionSlot::~SessionSlot() {
  SSL_SESSION_free(session_);
}

void SessionSlot::put(const ContextPtr& context, ssl_session_st* session, std::string end) {
  SSL_SESSION_free(session_);
  session_ = session;
  context_ = context;
  end_ = std::move(end);
}

Stream::Stream(ContextPtr context, Side side, int socket, SessionSlot* slot)
    : context_(std::move(context)), side_(side), slot_(slot), ssl_(SSL_new(context_->native())) {
  BIO* bio = ssl_ == nullptr ? nullptr : make_socket_bio(socket);
  if (bio == nullptr) {
    problem_ = "no memory for a TLS connection";
    broken_ = true;
    return;
  }
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  SSL_set_msg_callback(ssl_, count_message);
  if (side == Side::accepted) {
    SSL_set_accept_state(ssl_);
    return;
  }
  SSL_set_connect_state(ssl_);
  if (slot_ != nullptr && slot_->session_ != nullptr && slot_->context_.lock() == context_ &&
      !has_ended(slot_->end_, *context_)) {
    SSL_set_session(ssl_, slot_->session_);
    session_end_ = slot_->end_;
  }
}

Stream::~Stream() {
  // Otherwise OpenSSL would forget the session of a connection that ends without a farewell: the
  // next one, after the network broke or a node was started again, could not continue it.
  if (established_ && problem_.empty()) {
    SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
  SSL_free(ssl_);
}

Stream& Stream::of(const ssl_st* ssl) {
  return *static_cast<Stream*>(SSL_get_app_data(ssl));
}

const std::string& Stream::show_key(std::string shown, const std::string& name) {
  offered_key_ = name;
  return shown_key_ = std::move(shown);
}

bool Stream::keep(ssl_session_st* session) {
  if (slot_ == nullptr) return false;
  const bool continued = SSL_session_reused(ssl_) == 1;
  slot_->put(context_, session, continued ? session_end_ : end_of_proof(ssl_, *context_));
  return true;
}

std::size_t Stream::messages_max() const {
  return established_ ? kMessagesWithoutBytesMax : kMessagesInHandshakeMax;
}

void Stream::note_message() {
  // OpenSSL reads nothing more then.
  if (++messages_ > messages_max()) SSL_set_shutdown(ssl_, SSL_RECEIVED_SHUTDOWN);
}

Stream::Step Stream::took(std::size_t bytes) {
  messages_ = 0;
  return {State::done, bytes};
}

Stream::Step Stream::step_of(int result, const char* during) {
  const int code = SSL_get_error(ssl_, result);
  if (messages_ > messages_max()) {
    broken_ = true;
    fault_ = Fault::protocol;
    problem_ = fmt::format("{}: more than {} messages of TLS without anything else", during,
                           messages_max());
    return {State::failed, 0};
  }
  switch (code) {
    case SSL_ERROR_WANT_READ: return {State::wants_read, 0};
    case SSL_ERROR_WANT_WRITE: return {State::wants_write, 0};
    case SSL_ERROR_ZERO_RETURN: return {State::ended, 0};
    case SSL_ERROR_SYSCALL: broken_ = true; return {State::ended, 0};
    default: break;
  }
  broken_ = true;
  const long verdict = SSL_get_verify_result(ssl_);
  note_fault(ERR_peek_error(), verdict);
  problem_ = fmt::format("{}: {}", during, openssl_problem());
  if (!established_ && !context_->keys().empty()) {
    problem_ += "; does the other side have the same key?";
  }
  if (verdict != X509_V_OK)
    problem_ += fmt::format(" ({})", X509_verify_cert_error_string(verdict));
  return {State::failed, 0};
}

void Stream::note_fault(unsigned long code, long verdict) {
  const int reason = ERR_GET_REASON(code);
  if (verdict != X509_V_OK || reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    fault_ = Fault::certificate;
  } else {
    fault_ = reason >= SSL_AD_REASON_OFFSET ? Fault::refused : Fault::protocol;
  }
}

void Stream::expect_server(std::string host) {
  server_ = std::move(host);
  if (ssl_ == nullptr || is_ip_address(server_)) return;
  SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, server_.data());
}

bool Stream::is_expected_server(X509* certificate) const {
  if (peer_name_ && std::holds_alternative<NodeName>(*peer_name_)) return true;
  return is_ip_address(server_)
             ? X509_check_ip_asc(certificate, server_.c_str(), 0) == 1
             : X509_check_host(certificate, server_.data(), server_.size(), 0, nullptr) == 1;
}

Stream::Step Stream::handshake() {
  if (broken_) return {problem_.empty() ? State::ended : State::failed, 0};
  if (established_) return {State::done, 0};
  clear_errors();
  const int result = SSL_do_handshake(ssl_);
  if (result != 1) return step_of(result, "TLS handshake");
  if (!note_proof()) {
    broken_ = true;
    return {State::failed, 0};
  }
  established_ = true;
  return took(0);
}

bool Stream::note_proof() {
  if (context_->of_peers()) {
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    if (size == 0) {
      problem_ = "this is not a peer port of Leasehold";
      return false;
    }
  }
  const CertificateHandle certificate(SSL_get1_peer_certificate(ssl_));
  if (certificate) {
    fault_ = Fault::certificate;
    if (SSL_get_verify_result(ssl_) != X509_V_OK) {
      problem_ = "the certificate is not valid";
      return false;
    }
    peer_name_ = name_in(certificate.get());
    if (!server_.empty() && !is_expected_server(certificate.get())) {
      problem_ = fmt::format("the server's certificate is neither a node's nor for '{}'", server_);
      return false;
    }
    fault_ = Fault::none;
  } else if (!offered_key_.empty() && SSL_session_reused(ssl_) == 1) {
    peer_key_ = offered_key_;
  }
  if (!context_->demands_proof() || certificate || !peer_key_.empty()) return true;
  problem_ = "the other side has proved neither a certificate nor the group's key";
  return false;
}

Stream::Step Stream::read(char* to, std::size_t size) {
  LEASEHOLD_ASSERT(established_);
  if (broken_) return {problem_.empty() ? State::ended : State::failed, 0};
  clear_errors();
  std::size_t got = 0;
  const int result = SSL_read_ex(ssl_, to, size, &got);
  starved_ = result != 1;
  return starved_ ? step_of(result, "TLS") : took(got);
}

Stream::Step Stream::write(std::string_view bytes) {
  LEASEHOLD_ASSERT(established_ && !bytes.empty());
  if (broken_) return {problem_.empty() ? State::ended : State::failed, 0};
  clear_errors();
  std::size_t taken = 0;
  const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &taken);
  return result == 1 ? took(taken) : step_of(result, "TLS");
}

bool Stream::has_pending() const {
  // OpenSSL counts a part of a record, too.
  return !broken_ && !starved_ && SSL_has_pending(ssl_) == 1;
}

void Stream::shut_down() {
  if (broken_ || !established_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

std::string Stream::peer_serial() const {
  const CertificateHandle certificate(SSL_get1_peer_certificate(ssl_));
  return certificate ? serial_text(certificate.get()) : std::string();
}

bool Stream::resumed() const {
  return established_ && peer_key_.empty() && SSL_session_reused(ssl_) == 1;
}

bool Stream::believed_by(const Context& context) const {
  if (!peer_key_.empty()) {
    for (const GroupKey& key : context.keys()) {
      if (key.name() == peer_key_) return true;
    }
    return false;
  }
  const CertificateHandle certificate(SSL_get1_peer_certificate(ssl_));
  if (!certificate) return !context.demands_proof();
  const VerificationHandle verification(X509_STORE_CTX_new());
  if (!verification ||
      X509_STORE_CTX_init(verification.get(), SSL_CTX_get_cert_store(context.native()),
                          certificate.get(), SSL_get_peer_cert_chain(ssl_)) != 1) {
    return false;
  }
  X509_STORE_CTX_set_default(verification.get(),
                             side_ == Side::accepted ? "ssl_client" : "ssl_server");
  const bool valid = X509_verify_cert(verification.get()) == 1;
  ERR_clear_error();
  return valid;
}

}  // namespace leasehold::tls
