// The connections of a load: which of them an operation goes to, what is under way on each, and
// what comes back.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/dialer.h>
#include <leasehold/bench/load/layout.h>
#include <leasehold/bench/load/mix.h>
#include <leasehold/bench/load/options.h>
#include <leasehold/bench/load/reply.h>
#include <leasehold/bench/load/talk.h>
#include <leasehold/bench/recorder.h>
#include <leasehold/bench/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::bench {

/// An operation under way. Instants are of monotonic_ns().
struct Ticket {
  LoadOperation operation;
  std::uint64_t due = 0;   ///< when it should have begun; closed loop: when it did
  std::uint64_t sent = 0;  ///< when its last request was given to the connection
  bool counts = false;     ///< due after the warm-up
  bool second = false;     ///< of a modify: its SET is under way
  unsigned redirections = 0;
  Recorder::Place recorded = Recorder::kNowhere;  ///< its last request
};

/// One thread, beside the dialer's own.
class Links {
 public:
  /// What the load does with what comes back. Calls may send() again.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void answered(std::size_t link, const Ticket& ticket, const ReplyView& reply,
                          std::uint64_t now) = 0;
    /// `why`: a kind of error, in a few words. Nobody knows whether it was executed.
    virtual void lost(const Ticket& ticket, const std::string& why) = 0;
    /// A connection could not be opened.
    virtual void not_opened(const Error& error) = 0;
  };

  /// `options` outlives it. Opens all connections. Errors: none could be opened, or a server
  /// refuses the login or the read mode.
  static Result<std::unique_ptr<Links>> open(const LoadOptions& options);

  void set_listener(Listener& listener) { listener_ = &listener; }

  /// The connection for an operation on `key`: `hint`, if that one will do. None: none is open.
  std::optional<std::size_t> choose(std::string_view key, std::size_t hint);
  /// The same, but only at a server that the key belongs to.
  std::optional<std::size_t> choose_owner(std::string_view key, std::size_t hint);
  /// Gives a request to the connection; flush() sends it.
  void send(std::size_t link, const Request& request, Ticket ticket);
  void flush();
  /// Until something came back, `until`, or a while. Then calls the listener for what came.
  Result<void> wait(std::uint64_t until);
  /// Opens again what was closed, follows the layout, and gives up connections that are silent.
  /// Call it some times a second.
  void look_after(std::uint64_t now);
  /// Opens connections to this server too, and sends it the operations of the slot: what -MOVED
  /// asks for. False: the text is no redirection.
  bool redirect(std::string_view moved);

  std::size_t in_flight() const { return in_flight_; }
  std::size_t size() const { return links_.size(); }

 private:
  struct Link {
    Descriptor socket;
    std::unique_ptr<Talk> talk;
    std::string target;  ///< the server that it is for
    std::string server;  ///< that it is connected to, or is being: another one while that is away
    bool dialing = false;
    bool polls_output = false;
    bool dirty = false;
    bool moving = false;  ///< it takes nothing more, and then goes to another server
    std::uint64_t redial_at = 0;
    std::uint64_t return_at = 0;  ///< when it tries its own server again
    unsigned failures = 0;        ///< to open it, in a row
    std::string output;
    std::size_t output_at = 0;
    std::uint64_t asked = 0;                               ///< on this connection
    std::deque<std::pair<std::uint64_t, Ticket>> pending;  ///< by the number of the request

    bool usable() const { return socket.open() && !moving; }
  };
  struct Taking;

  explicit Links(const LoadOptions& options) : options_(options) {}
  Result<void> begin();
  void dial(std::size_t link);
  std::string server_for(std::size_t link) const;
  void set_targets();
  void take_answers();
  void take_answer(Dialer::Answer answer);
  void take_layout(Layout layout);
  std::optional<std::size_t> any_open(std::size_t hint) const;
  bool flush_link(std::size_t link);
  void watch_output(std::size_t link, bool wanted);
  void read_link(std::size_t link);
  bool take_reply(std::size_t link, std::uint64_t number, const ReplyView& reply,
                  std::uint64_t now);
  void drop(std::size_t link, const std::string& why);

  const LoadOptions& options_;
  Listener* listener_ = nullptr;
  Layout layout_;
  std::vector<std::string> servers_;  ///< of the layout
  std::unique_ptr<Dialer> dialer_;
  Descriptor epoll_;
  std::deque<Link> links_;  ///< new ones leave the others where they are
  std::map<std::string, std::vector<std::size_t>> links_of_;  ///< open ones, by server
  std::size_t turn_ = 0;
  std::vector<std::size_t> dirty_;
  std::size_t in_flight_ = 0;
  std::string chunk_;
};

}  // namespace leasehold::bench
