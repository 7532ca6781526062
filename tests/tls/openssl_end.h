// One end of TLS as OpenSSL alone makes it, which may do what a Stream does not.
#pragma once

#include <leasehold/tls/openssl.h>

#include <openssl/ssl.h>

#include <string>
#include <utility>

namespace leasehold::tls {

using ContextHandle = std::unique_ptr<SSL_CTX, FreeBy<SSL_CTX_free>>;
using SslHandle = std::unique_ptr<SSL, FreeBy<SSL_free>>;

/// What the dialling side proves itself by: a pre-shared key, under an identity of any bytes.
struct SharedKey {
  std::string identity;
  std::string bytes;
  std::string cipher = "TLS_AES_128_GCM_SHA256";
};

/// Dials over a socket that does not block. Trusts everybody.
class OpensslEnd {
 public:
  explicit OpensslEnd(int socket, bool of_peers = false, SharedKey key = {})
      : key_(std::move(key)), context_(SSL_CTX_new(TLS_client_method())) {
    if (of_peers) {
      const std::string protocol = "\x10leasehold-peer/1";
      SSL_CTX_set_alpn_protos(context_.get(),
                              reinterpret_cast<const unsigned char*>(protocol.data()),
                              static_cast<unsigned>(protocol.size()));
    }
    if (!key_.bytes.empty()) {
      SSL_CTX_set_ciphersuites(context_.get(), key_.cipher.c_str());
      SSL_CTX_set_psk_use_session_callback(context_.get(), show_key);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_app_data(ssl_.get(), this);
    SSL_set_fd(ssl_.get(), socket);
    SSL_set_connect_state(ssl_.get());
  }

  /// False: it is not done, or has failed.
  bool handshake() {
    ERR_clear_error();
    return SSL_do_handshake(ssl_.get()) == 1;
  }
  bool write(const std::string& text) {
    ERR_clear_error();
    return SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) > 0;
  }
  /// Sends a message of TLS that has no bytes for the protocol above.
  bool update_key() {
    ERR_clear_error();
    return SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
           SSL_do_handshake(ssl_.get()) == 1;
  }
  SSL* native() const { return ssl_.get(); }

 private:
  static int show_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                      SSL_SESSION** session) {
    const SharedKey& key = static_cast<OpensslEnd*>(SSL_get_app_data(ssl))->key_;
    SSL_SESSION* made = SSL_SESSION_new();
    const bool sha384 = key.cipher == "TLS_AES_256_GCM_SHA384";
    const unsigned char number[] = {0x13, static_cast<unsigned char>(sha384 ? 0x02 : 0x01)};
    SSL_SESSION_set1_master_key(made, reinterpret_cast<const unsigned char*>(key.bytes.data()),
                                key.bytes.size());
    SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl, number));
    SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION);
    *identity = reinterpret_cast<const unsigned char*>(key.identity.data());
    *size = key.identity.size();
    *session = made;
    return 1;
  }

  SharedKey key_;
  ContextHandle context_;
  SslHandle ssl_;
};

}  // namespace leasehold::tls
