// One TLS connection over a socket that somebody else owns and waits on.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/name.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_session_st;
struct x509_st;

namespace leasehold::tls {

/// What the last connection to one server left, so that the next one need not look at certificates
/// again. Belongs to the context that it was made under: with another one it is empty.
class SessionSlot {
 public:
  SessionSlot() = default;
  ~SessionSlot();
  SessionSlot(const SessionSlot&) = delete;
  SessionSlot& operator=(const SessionSlot&) = delete;

 private:
  friend class Stream;
  void put(const ContextPtr& context, ssl_session_st* session, std::string end);
  std::weak_ptr<const Context> context_;
  ssl_session_st* session_ = nullptr;
  std::string end_;  ///< of what the server has proved: session_end.h
};

/// Never blocks, never raises SIGPIPE, throws nothing. One thread at a time.
class Stream {
 public:
  enum class Side : std::uint8_t { dialled, accepted };
  enum class State : std::uint8_t {
    done,
    wants_read,   ///< call again when the socket is readable
    wants_write,  ///< call again when it is writable
    ended,        ///< the other side has closed the connection, or the system did
    failed,       ///< see problem(): what came is not TLS, or proves nothing
  };
  /// Whose fault a failed handshake was.
  enum class Fault : std::uint8_t {
    none,
    protocol,     ///< what came is not TLS, or not in a form that is accepted
    certificate,  ///< the other side showed none, or one that is not valid
    refused,      ///< the other side does not accept this side, or gave up with an alert
  };
  struct Step {
    State state = State::done;
    std::size_t bytes = 0;  ///< read, or taken
  };

  /// `socket` is connected and does not block; it outlives the stream. `slot`, which may be null,
  /// does so too or forget_slot() is called.
  Stream(ContextPtr context, Side side, int socket, SessionSlot* slot = nullptr);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Before the handshake, at the dialling side of a client port: the name or the address of the
  /// server. Its certificate has to be for that, or to name a node of a group: nodes are known by
  /// their names, under whatever address they are reached. Who has a node's certificate of this
  /// authority is a node; a user's certificate does not make a server.
  void expect_server(std::string host);
  /// `done`: the other side has proved itself as the context asks.
  Step handshake();
  bool established() const { return established_; }
  /// After the handshake. Reads at least one byte if it says done.
  Step read(char* to, std::size_t size);
  /// Takes a part of `bytes`, which is not empty. After wants_*, call again with the same bytes,
  /// more may follow them.
  Step write(std::string_view bytes);
  /// read() may have bytes without the socket. False after a read() that wants something: a part of
  /// a record is no reason to read again before more has arrived.
  bool has_pending() const;
  /// Says farewell, as far as the socket takes it.
  void shut_down();
  void forget_slot() { slot_ = nullptr; }

  /// After `failed`: why, for people.
  const std::string& problem() const { return problem_; }
  Fault fault() const { return fault_; }
  /// The name in the certificate that the other side has proved; none: it showed none, or one
  /// without a name of ours.
  const std::optional<CertificateName>& peer_name() const { return peer_name_; }
  /// The name of the group key that the other side has proved; empty: none.
  const std::string& peer_key() const { return peer_key_; }
  /// The serial number of the certificate that the other side has proved, as `leasehold cert show`
  /// has it; empty: it showed none.
  std::string peer_serial() const;
  /// It went on with an earlier connection's session.
  bool resumed() const;
  /// Would `context` still believe what the other side has proved: is its certificate valid and not
  /// revoked, is its key known?
  bool believed_by(const Context& context) const;

  // For context.cc.
  static Stream& of(const ssl_st* ssl);
  void offered_key(const std::string& name) { offered_key_ = name; }
  const std::string& show_key(std::string shown, const std::string& name);
  bool keep(ssl_session_st* session);
  void note_message();

 private:
  Step step_of(int result, const char* during);
  Step took(std::size_t bytes);
  std::size_t messages_max() const;
  /// What the handshake has proved. False: not what the context asks.
  bool note_proof();
  void note_fault(unsigned long code, long verdict);
  bool is_expected_server(x509_st* certificate) const;

  ContextPtr context_;
  Side side_;
  SessionSlot* slot_;
  ssl_st* ssl_;
  bool established_ = false;
  bool broken_ = false;
  /// The last read() found no whole record.
  bool starved_ = false;
  /// Records and messages of TLS that came since the last bytes of the protocol above.
  std::size_t messages_ = 0;
  std::string session_end_;  ///< of the session that it goes on with
  std::string offered_key_;
  std::string shown_key_;
  std::string peer_key_;
  std::optional<CertificateName> peer_name_;
  std::string server_;  ///< that was dialled; empty: any
  std::string problem_;
  Fault fault_ = Fault::none;
};

}  // namespace leasehold::tls
