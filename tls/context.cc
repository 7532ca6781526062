#include <leasehold/tls/context.h>

#include <leasehold/base/assert.h>
#include <leasehold/tls/openssl.h>
#include <leasehold/tls/session_end.h>
#include <leasehold/tls/stream.h>

#include <fmt/format.h>

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace leasehold::tls {

namespace {

/// What a peer names in its hello (ALPN, RFC 7301): a connection that somebody leads to another
/// port of the same node, with the same certificate, ends in the handshake.
constexpr std::string_view kPeerProtocol = "\x10leasehold-peer/1";
constexpr std::string_view kKeyPrefix = "leasehold/";
/// The one cipher that a group's key is used with, as TLS names it: AES-128-GCM, SHA-256.
constexpr unsigned char kKeyCipher[] = {0x13, 0x01};
/// How long a session may be continued without the certificates being looked at again; shorter if
/// one of them ends before.
constexpr long kSessionSeconds = 600;

Error problem_of(const std::string& file, const char* what) {
  return Error{ErrorCode::invalid_argument,
               fmt::format("{}: {}: {}", file, what, openssl_problem())};
}

/// A private key that the whole machine may read is no secret.
Result<void> check_key_mode(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return Error{ErrorCode::io, fmt::format("cannot read the key {}: {}", path,
                                            std::generic_category().message(errno))};
  }
  if ((found.st_mode & S_IRWXO) == 0) return {};
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("everybody on this machine may read the key {}: chmod 600 {}", path, path)};
}

SessionHandle session_of(SSL* ssl, const GroupKey& key) {
  SessionHandle session(SSL_SESSION_new());
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kKeyCipher);
  if (!session || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session.get(), key.bytes().data(), key.bytes().size()) != 1 ||
      SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1) {
    return nullptr;
  }
  return session;
}

const Context& context_of(const SSL* ssl) {
  return *static_cast<const Context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

/// At the accepting side: which key the dialler names. One that is not known may be a ticket, which
/// OpenSSL judges.
int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  // A hello names several, and the last one that OpenSSL asks for is the one that it takes.
  Stream::of(ssl).offered_key({});
  const std::string_view name(reinterpret_cast<const char*>(identity), size);
  if (!name.starts_with(kKeyPrefix)) return 1;
  for (const GroupKey& key : context_of(ssl).keys()) {
    if (name.substr(kKeyPrefix.size()) != key.name()) continue;
    Stream::of(ssl).offered_key(key.name());
    *session = session_of(ssl, key).release();
    return *session == nullptr ? 0 : 1;
  }
  return 1;
}

/// At the dialling side.
int use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
            SSL_SESSION** session) {
  *session = nullptr;
  const GroupKey& key = context_of(ssl).keys().front();
  SessionHandle made = session_of(ssl, key);
  if (!made) return 0;
  // After a retry of the hello only a cipher with this digest can be used.
  if (digest != nullptr &&
      digest != SSL_CIPHER_get_handshake_digest(SSL_SESSION_get0_cipher(made.get())))
    return 1;
  const std::string& shown =
      Stream::of(ssl).show_key(fmt::format("{}{}", kKeyPrefix, key.name()), key.name());
  *identity = reinterpret_cast<const unsigned char*>(shown.data());
  *size = shown.size();
  *session = made.release();
  return 1;
}

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(
      &found, size, reinterpret_cast<const unsigned char*>(kPeerProtocol.data()),
      static_cast<unsigned>(kPeerProtocol.size()), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int keep_session(SSL* ssl, SSL_SESSION* session) {
  return Stream::of(ssl).keep(session) ? 1 : 0;
}

/// At the accepting side: notes in a ticket until when it is good. One that follows from a
/// continued session has the end of that.
int note_end(SSL* ssl, void*) {
  if (SSL_session_reused(ssl) == 1) return 1;
  const std::string end = end_of_proof(ssl, context_of(ssl));
  return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), end.data(), end.size());
}

/// A ticket whose certificate has ended leads to a full handshake, which judges it.
SSL_TICKET_RETURN judge_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char*, std::size_t,
                               SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  void* end = nullptr;
  std::size_t size = 0;
  SSL_SESSION_get0_ticket_appdata(session, &end, &size);
  if (has_ended({static_cast<const char*>(end), size}, context_of(ssl)))
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

}  // namespace

Context::Context(Side side, bool of_peers)
    : native_(SSL_CTX_new(side == Side::server ? TLS_server_method() : TLS_client_method())),
      of_peers_(of_peers) {
  LEASEHOLD_ASSERT(native_ != nullptr);
  SSL_CTX_set_app_data(native_, this);
  SSL_CTX_set_min_proto_version(native_, of_peers ? TLS1_3_VERSION : TLS1_2_VERSION);
  // Every message of the protocols above has its length, so an end without a farewell cuts nothing
  // off unseen.
  SSL_CTX_set_options(
      native_, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(native_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Of many clients, most are idle. The few peers never are, and their buffers stay.
  if (!of_peers) SSL_CTX_set_mode(native_, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(native_, 1);
  SSL_CTX_set_timeout(native_, kSessionSeconds);
  const auto* protocol = reinterpret_cast<const unsigned char*>(kPeerProtocol.data());
  if (side == Side::server) {
    constexpr std::string_view kName = "leasehold";
    SSL_CTX_set_session_id_context(native_, reinterpret_cast<const unsigned char*>(kName.data()),
                                   kName.size());
    SSL_CTX_set_session_cache_mode(native_, SSL_SESS_CACHE_OFF);  // tickets hold it all
    SSL_CTX_set_num_tickets(native_, 1);
    SSL_CTX_set_session_ticket_cb(native_, note_end, judge_ticket, nullptr);
    if (of_peers) SSL_CTX_set_alpn_select_cb(native_, choose_protocol, nullptr);
  } else {
    SSL_CTX_set_session_cache_mode(native_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(native_, keep_session);
    if (of_peers)
      SSL_CTX_set_alpn_protos(native_, protocol, static_cast<unsigned>(kPeerProtocol.size()));
  }
}

Context::~Context() {
  SSL_CTX_free(native_);
}

Result<void> Context::load(const CertificateFiles& files) {
  if (files.certificate.empty() || files.key.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "a certificate needs its key, and a key its certificate: give both files"};
  }
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(native_, files.certificate.c_str()) != 1) {
    return problem_of(files.certificate, "not a certificate");
  }
  if (auto mode = check_key_mode(files.key); !mode.ok()) return mode;
  if (SSL_CTX_use_PrivateKey_file(native_, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return problem_of(files.key, "not the private key of the certificate");
  }
  if (SSL_CTX_check_private_key(native_) != 1)
    return problem_of(files.key, "not the key of the certificate");
  return {};
}

Result<void> Context::trust(const CertificateFiles& files) {
  ERR_clear_error();
  if (files.authority.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "no authority is given: name the file of its certificate"};
  }
  if (SSL_CTX_load_verify_locations(native_, files.authority.c_str(), nullptr) != 1) {
    return problem_of(files.authority, "not the certificate of an authority");
  }
  if (files.revoked.empty()) return {};
  X509_STORE* store = SSL_CTX_get_cert_store(native_);
  X509_LOOKUP* lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  if (lookup == nullptr ||
      X509_load_crl_file(lookup, files.revoked.c_str(), X509_FILETYPE_PEM) < 1) {
    return problem_of(files.revoked, "not a list of revoked certificates");
  }
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  revoked_end_ = end_of_lists(store);
  return {};
}

void Context::use_keys(Side side, std::vector<GroupKey> keys) {
  keys_ = std::move(keys);
  if (keys_.empty()) return;
  if (side == Side::server) {
    SSL_CTX_set_psk_find_session_callback(native_, find_key);
  } else {
    SSL_CTX_set_psk_use_session_callback(native_, use_key);
  }
}

Result<ContextPtr> Context::accept_peers(const CertificateFiles* files,
                                         std::vector<GroupKey> keys) {
  LEASEHOLD_ASSERT(files != nullptr || !keys.empty());
  const auto made = std::shared_ptr<Context>(new Context(Side::server, true));
  made->demands_proof_ = true;
  if (files != nullptr) {
    if (auto loaded = made->load(*files); !loaded.ok()) return loaded.error();
    if (auto trusted = made->trust(*files); !trusted.ok()) return trusted.error();
  } else {
    SSL_CTX_set_num_tickets(made->native_, 0);
  }
  SSL_CTX_set_verify(made->native_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  made->use_keys(Side::server, std::move(keys));
  return ContextPtr(made);
}

Result<ContextPtr> Context::dial_peers(const CertificateFiles& files) {
  const auto made = std::shared_ptr<Context>(new Context(Side::client, true));
  made->demands_proof_ = true;
  if (auto loaded = made->load(files); !loaded.ok()) return loaded.error();
  if (auto trusted = made->trust(files); !trusted.ok()) return trusted.error();
  SSL_CTX_set_verify(made->native_, SSL_VERIFY_PEER, nullptr);
  return ContextPtr(made);
}

Result<ContextPtr> Context::dial_peers(const GroupKey& key) {
  const auto made = std::shared_ptr<Context>(new Context(Side::client, true));
  made->demands_proof_ = true;
  // Trusts no authority: an answer by a certificate, without the key, ends the handshake.
  SSL_CTX_set_verify(made->native_, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_ciphersuites(made->native_, "TLS_AES_128_GCM_SHA256");
  // A continued session would save nothing, and would outlive the key.
  SSL_CTX_set_session_cache_mode(made->native_, SSL_SESS_CACHE_OFF);
  made->use_keys(Side::client, {key});
  return ContextPtr(made);
}

Result<ContextPtr> Context::serve_clients(const CertificateFiles& files, ClientCertificates wish) {
  const auto made = std::shared_ptr<Context>(new Context(Side::server, false));
  if (auto loaded = made->load(files); !loaded.ok()) return loaded.error();
  if (wish == ClientCertificates::none) return ContextPtr(made);
  if (auto trusted = made->trust(files); !trusted.ok()) return trusted.error();
  SSL_CTX_set_verify(
      made->native_,
      SSL_VERIFY_PEER |
          (wish == ClientCertificates::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
      nullptr);
  return ContextPtr(made);
}

Result<ContextPtr> Context::be_client(const CertificateFiles& files) {
  const auto made = std::shared_ptr<Context>(new Context(Side::client, false));
  if (!files.certificate.empty() || !files.key.empty()) {
    if (auto loaded = made->load(files); !loaded.ok()) return loaded.error();
  }
  if (files.authority.empty()) {
    if (SSL_CTX_set_default_verify_paths(made->native_) != 1) {
      return Error{ErrorCode::io,
                   "the system's authorities cannot be read: name the file of an authority"};
    }
  } else if (auto trusted = made->trust(files); !trusted.ok()) {
    return trusted.error();
  }
  SSL_CTX_set_verify(made->native_, SSL_VERIFY_PEER, nullptr);
  return ContextPtr(made);
}

}  // namespace leasehold::tls
