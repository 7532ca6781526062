// One client connection: a socket with its input and output, around a session. Not for other rooms.
#pragma once

#include <leasehold/server/front/client_channel.h>
#include <leasehold/server/front/client_memory.h>
#include <leasehold/server/front/io_thread.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/session.h>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::server {

/// On its thread, but for the constructor's caller.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(IoThread& thread, ClientChannel channel, std::string address);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  /// Runs commands of the input and sends output, while one of the two makes progress and the turn
  /// lasts.
  void pump();
  /// It knows of progress that was made.
  void pump_awake() {
    awake_ = false;
    pump();
  }
  void pump_in_turn() {
    queued_ = false;
    pump();
  }
  /// Behind every other connection of the thread that waits for a turn.
  void take_turn_later() {
    if (!std::exchange(queued_, true)) thread_->queue_turn(shared_from_this());
  }

  void stop_reading() { draining_ = true; }
  /// Nothing is read any more but by finish(). What has been read already, and waits for its turn
  /// among the events of this thread, comes to process() before anything that is posted from now
  /// on.
  void prepare_to_finish();
  /// For the last time: what is ready to be sent is sent, in as many turns as it takes. What has
  /// arrived by now is answered too: a request that is left unread breaks the connection, and its
  /// client would not know what it did.
  void finish();
  /// The first step on another thread.
  void arrive(asio::ip::tcp::socket socket);

  /// Called about every second. True: the client has asked nothing for too long.
  bool sweep(lease::Duration idle_timeout);
  /// As often. True: its first request takes too long to arrive.
  bool slow_to_ask(lease::Duration limit) const {
    return limit > lease::Duration(0) && began_.count() != 0 && !session_->has_asked() &&
           coarse_now() - began_ > limit;
  }
  /// Called as often. True: it is to be pumped.
  bool wants_progress() {
    return !closed_ && !lingering_ && session_->wants_progress(coarse_now());
  }
  bool looks_outdated() const { return channel_.looks_outdated(thread_->state.client_tls); }
  bool is_believed() { return channel_.is_believed(thread_->state.client_tls); }
  bool fits(const ClientFilter& filter) const {
    return (!filter.id || *filter.id == session_->id()) &&
           (!filter.not_id || *filter.not_id != session_->id()) &&
           (filter.address.empty() || filter.address == session_->address());
  }
  /// Its client is nobody yet: it has proven no user, where one is needed, or it has not asked for
  /// anything.
  bool is_nobodys() const {
    return session_->is_stranger() || (!session_->has_asked() && !session_->user().proven);
  }
  /// Commands are under way, as the check of a password.
  bool busy() const { return session_->busy(); }
  std::uint64_t id() const { return session_->id(); }
  std::chrono::nanoseconds arrived() const { return arrived_; }
  std::string describe() const { return session_->describe(idle_seconds()); }
  void close_after_replies() { session_->close_after_replies(); }
  void close();

 private:
  void wake() {
    if (std::exchange(awake_, true)) return;
    thread_->wake(shared_from_this());
  }
  std::uint64_t idle_seconds() const {
    const auto idle = std::chrono::duration_cast<std::chrono::seconds>(coarse_now() - active_);
    return static_cast<std::uint64_t>(idle.count());
  }
  /// It is among the newcomers, and has shown that it belongs elsewhere.
  bool leaving() const {
    return thread_->next_thread && session_->proven() && !session_->closing() && !draining_ &&
           !finishing_;
  }
  void leave();

  /// With so large an input.
  bool affords(std::size_t capacity);
  bool reserve(std::size_t capacity);
  /// Counts what it holds by now. False: too much over all connections, and this one was closed.
  bool pay();
  void refuse_more(bool room_to_answer);

  bool make_space();
  void read();
  void send_all();
  /// False: nothing has arrived, or nothing more is taken.
  bool read_now();
  /// Sends at once what the system takes and the rest when it can. False: some is left.
  bool send();
  void send_rest(std::size_t sent);
  void linger();
  void linger_on();
  void drop_input();

  IoThread* thread_;
  ClientChannel channel_;
  asio::steady_timer linger_;
  std::chrono::nanoseconds linger_until_{0};
  std::shared_ptr<Session> session_;
  /// Uninitialised beyond end_: memory that a client announces and never sends costs nothing.
  std::unique_ptr<char[]> input_;
  ClientMemory::Share share_;
  std::chrono::nanoseconds began_{0};               ///< when its first byte came
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;  ///< begin to end: the bytes that wait
  std::string sending_;                             ///< output that the system did not take at once
  std::chrono::nanoseconds arrived_ = coarse_now();
  std::chrono::nanoseconds active_ = coarse_now();  ///< when the client's last bytes came
  bool reading_ = false, interrupted_ = false;  ///< interrupted: the reading, to leave the thread
  bool awake_ = false, queued_ = false;  ///< the thread knows of progress; that it waits its turn
  bool draining_ = false, finishing_ = false, lingering_ = false, closed_ = false;
};

}  // namespace leasehold::server
