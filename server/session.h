// One client's conversation: requests in, replies out, strictly in order.
//
// It knows no sockets: the connection hands it bytes and takes its output, so tests can too. A
// command that can be answered at once is; one that has to wait for the node takes a numbered place
// in the line of replies. Places that are under way at the same time are all writes or all reads:
// so a read sees every write before it in its pipeline, and no write behind it.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/node.h>
#include <leasehold/server/counters.h>
#include <leasehold/server/resp.h>
#include <leasehold/server/server_state.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Replies of one connection that may be outstanding, by number and by bytes of their commands.
/// Past it the session takes no further request until some are answered.
inline constexpr std::size_t kInFlightMax = 1024;
inline constexpr std::size_t kInFlightBytesMax = 32U << 20U;
/// Reply bytes that wait for the client to read them. Past it the session takes no further request.
inline constexpr std::size_t kOutputBytesMax = 1U << 20U;

using Arguments = std::vector<std::string_view>;
struct CommandSpec;

/// Runs tasks on the session's thread. post() may be called from any thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::function<void()> task) = 0;
};

/// What a command touches; tells which others may be under way beside it in a pipeline.
enum class CommandEffect : std::uint8_t {
  none,
  read,
  write,
  dialect,  ///< changes how replies look: runs when all before it are answered
};

/// What a read asks of the store once it may.
struct ReadCommand {
  enum class Kind : std::uint8_t { get, exists, size };
  Kind kind = Kind::get;
  std::vector<std::string> keys;
};

/// One thread at a time (the connection's), but for what Executor posts.
class Session : public std::enable_shared_from_this<Session> {
 public:
  struct Context {
    node::Node& node;
    const kv::Store& store;
    ServerState& state;
    Counters& counters;  ///< of the session's thread
    Executor& executor;
  };

  /// `on_progress` is called on the session's thread when replies that were waited for have arrived
  /// and process() may go on.
  Session(Context context, std::uint64_t id, std::string address,
          std::function<void()> on_progress);

  /// Takes as many requests from the front of `input` as may run now. Returns how many bytes they
  /// were; call it again with the rest, when more has arrived or there was progress.
  std::size_t process(std::string_view input);
  /// The last process() stopped although a request may have been complete: it waits for progress,
  /// or for output() to be sent.
  bool stalled() const { return stalled_; }
  /// Length of the unfinished request at the front of the input, so far as it is known.
  std::size_t expected() const { return parser_.expected(); }
  /// Replies to send. The caller removes what it has sent.
  std::string& output() { return output_; }
  /// Close the connection once output() is sent.
  bool closing() const { return closing_; }  ///< no further request is taken
  bool finished() const { return closing_ && line_.empty(); }
  // For the commands (commands.cc).

  /// A read of the store. Appends the answer to `out`, or takes a place.
  void read(const Arguments& args, ReadCommand::Kind kind, std::string& out);
  /// A write. Appends an error to `out`, or takes a place.
  void write(const kv::Command& command, std::string& out);
  /// Takes a place that `format` fills with the node's status.
  void with_status(std::function<void(const node::NodeStatus&, std::string&)> format);
  /// Closes after the replies so far; nothing behind it is read.
  void close_after_replies() { closing_ = true; }
  /// For the reads from here on.
  void set_read_mode(node::ReadMode mode);
  node::ReadMode read_mode() const { return read_mode_; }

  std::uint64_t id() const { return id_; }
  const std::string& address() const { return address_; }
  const Context& context() const { return context_; }
  Protocol protocol = Protocol::resp2;
  std::string name;

 private:
  enum class PlaceKind : std::uint8_t { read, write, other };
  enum class PlaceState : std::uint8_t {
    waiting,
    granted,  ///< a read that may be made now; it is made when its turn in the line comes
    done,     ///< `reply` is the answer
  };
  /// A reply's place in the line.
  struct Place {
    PlaceKind kind = PlaceKind::other;
    PlaceState state = PlaceState::waiting;
    std::size_t bytes = 0;  ///< that it holds: of the command, later of the reply
    ReadCommand read;
    std::string reply;
  };
  using PlaceNumbers = std::vector<std::uint64_t>;

  bool has_room() const;
  bool may_run(CommandEffect effect) const;
  void run_one(const CommandSpec* spec, const Arguments& args);
  std::uint64_t take_place(PlaceKind kind, std::size_t bytes);
  Place& place(std::uint64_t number);
  void fill(std::uint64_t number, std::string reply);
  /// Moves every reply that is ready from the front of the line to the output.
  void flush_line();
  template <class Keys>
  void answer(ReadCommand::Kind kind, const Keys& keys, std::string& out) const;
  void submit_reads();
  node::ReadCompletion read_completion(PlaceNumbers places, bool waited, node::ReadMode mode);
  void finish_reads(const PlaceNumbers& places, bool waited, node::ReadMode mode,
                    const node::ReadResult& result);
  void finish_write(std::uint64_t number, const node::ProposeResult& result);

  Context context_;
  std::uint64_t id_;
  std::string address_;
  node::ReadMode read_mode_ = node::ReadMode::lease;
  std::function<void()> on_progress_;
  RequestParser parser_;
  std::string output_;
  std::string late_reply_;  ///< of a command that is answered at once behind one that waits
  std::deque<Place> line_;
  std::uint64_t first_place_ = 0;  ///< number of line_.front()
  std::size_t reads_under_way_ = 0;
  std::size_t writes_under_way_ = 0;
  std::size_t bytes_under_way_ = 0;
  /// Reads of this process() call that the node has to justify. All have arrived, so one read index
  /// taken later serves them all.
  PlaceNumbers asking_;
  /// Reads of this process() call that are valid under the lease, but wait for apply to reach
  /// `waiting_index_`.
  PlaceNumbers waiting_;
  raft::Index waiting_index_;
  bool deferred_ = false;  ///< the command that runs has taken a place
  bool stalled_ = false;
  bool closing_ = false;
};

}  // namespace leasehold::server
