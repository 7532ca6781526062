// One client's conversation: requests in, replies out, strictly in order.
//
// It knows no sockets: the connection hands it bytes and takes its output, so tests can too. A
// command is answered at once if possible; one that has to wait for the node takes a numbered place
// in the line of replies. Places that are under way at the same time are all writes or all reads:
// so a read sees every write before it in its pipeline, and no write after it.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/store.h>
#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/command_trace.h>
#include <leasehold/server/front/counters.h>
#include <leasehold/server/front/event_hubs.h>
#include <leasehold/server/front/executor.h>
#include <leasehold/server/front/multi.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/place.h>
#include <leasehold/server/front/read_policy.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/server/front/session_limits.h>
#include <leasehold/server/users/session_user.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

struct Ear;
struct Listening;
class Subscriptions;

/// One thread at a time (the connection's), except for tasks that Executor posts.
class Session : public std::enable_shared_from_this<Session> {
 public:
  struct Context {
    const ServedGroups& groups;
    ServerState& state;
    Counters* counters;    ///< of the session's thread
    Executor* executor;    ///< the session's thread
    Executor* background;  ///< a thread for what takes long
    EventHubs* events;     ///< of the session's thread; null while it moves
  };

  /// `on_progress` is called on the session's thread when replies that were waited for have arrived
  /// and process() may go on.
  Session(Context context, std::uint64_t id, std::string address,
          std::function<void()> on_progress);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Takes as many requests from the front of `input` as may run now, within one turn. Returns how
  /// many bytes they were; call it again with the rest, when more has arrived, when there was
  /// progress, or when others have had their turn. Without input it moves on what was taken before.
  std::size_t process(std::string_view input);
  /// The last process() stopped because its turn was over: it would go on at once.
  bool turn_over() const { return turn_over_; }
  /// The last commands were quick and right: a client like most.
  bool proven() const { return good_in_a_row_ >= kProvingCommands && !is_stranger(); }
  /// Goes on on another thread, for a session that is not busy(): the last step on the old one, and
  /// the first one on the new.
  void leave_thread();
  void move_to(Counters& counters, Executor& executor, EventHubs* events);
  /// The last process() may have left a request: it waits for progress, or for output() to be sent.
  bool stalled() const { return stalled_; }
  bool has_asked() const { return asked_; }  ///< a request has been complete
  /// Memory of commands that are parsed, queued or under way, of replies that wait for one of them
  /// or to be sent, and of what it listens to.
  std::size_t held_bytes() const;
  /// It has proven no user where it has to: it may do nothing, and gets little memory for that.
  bool is_stranger() const { return user_.seen != 0 && user_.rights == nullptr; }
  /// Length of the unfinished request at the front of the input, so far as it is known.
  std::size_t expected() const { return parser_.expected(); }
  std::string& output() { return output_; }  ///< to send; the caller removes what it has sent
  /// Commands are under way.
  bool busy() const { return !line_.empty() || user_.checking || waits_for_slot_; }
  bool closing() const { return closing_; }                    ///< no further request is taken
  bool finished() const { return closing_ && line_.empty(); }  ///< close it once output() is sent

  /// Whether a progress message to a watching client is due: then process() sends it.
  bool wants_progress(std::chrono::nanoseconds now);
  bool listening() const { return listening_ != nullptr; }  ///< it need not send requests
  void stop_listening();                                    ///< for a client that leaves

  // For the commands (commands_*.cc).
  /// A read of the store, of a command with effect `read` whose arity fits. Appends the answer to
  /// `out`, or takes a place.
  void read(const CommandSpec& spec, const Arguments& args, const ReadPolicy& policy,
            std::string& out);
  /// Proposes an encoded command; takes a place. `form`: the form of its reply. `parts`: the
  /// commands whose results a transaction returns. `repeatable`: see node::CallOptions.
  /// `movable`: any group may execute it that has the slot.
  void propose(Bytes command, ReplyForm form, TransactionParts parts, bool repeatable = false,
               bool movable = false);
  TransactionParts run_queued(Multi::Finished& finished);  ///< answers those that run here
  /// Takes a place that `format` fills with the node's status.
  void with_status(std::function<void(const node::NodeStatus&, std::string&)> format);
  /// The same with those of all groups, in the order of ServedGroups::all().
  void with_statuses(
      std::function<void(const std::vector<node::NodeStatus>&, std::string&)> format);
  /// Takes a place. The function that it returns fills it; call it once, from any thread.
  std::function<void(std::string)> answer_later();
  void close_after_replies() { closing_ = true; }  ///< nothing behind it is read
  void set_read_policy(const ReadPolicy& policy) { policy_ = policy; }  ///< from here on
  const ReadPolicy& read_policy() const { return policy_; }
  const ReadNote& last_read() const { return last_read_; }
  /// What the store is asked for, by a command that has `make`, with what this node has to add to
  /// it. The text of an error, or empty.
  std::string make(const CommandSpec& spec, const Arguments& args, kv::Operation& operation) const;
  /// Bytes of values that a command has read and does not show are work of the turn, too.
  void charge_loaded(std::size_t bytes) { work_ += bytes / kReplyBytesPerWord; }
  /// Counts a refusal of a command for its own sake and appends it. `text` has its first word.
  void refuse(std::string& out, std::string_view text);
  std::string describe(std::uint64_t idle_seconds) const;  ///< for CLIENT LIST
  /// Whether the node is about to stop, or a witness, or as below; then the command is refused.
  bool refuse_when_draining(std::string& out, bool in_each_group = false);
  /// Whether this node's state of the group is not served, or that of the users.
  bool refuse_distrusted(std::string& out, bool in_each_group = false);

  // Messages without a request (listening.h).
  bool watching() const;
  bool subscribed() const;
  /// Only if it does not listen yet. Watches from the revision `from` on, and returns that.
  std::uint64_t watch(kv::KeyFilter filter, std::uint64_t from, bool values);
  const Subscriptions* subscriptions() const;  ///< null: none
  /// Only if it does not watch. The caller changes them and then calls subscriptions_changed().
  Subscriptions& change_subscriptions();
  void subscriptions_changed();

  // The user (session_rights.cc).
  /// Called on the session's thread once the user has been proven; appends the reply.
  using Authenticated = std::function<void(Session&, std::string&)>;
  /// Checks a password and becomes the user; the slow part takes a place. Else the reply is an
  /// error, and the user stays who it was.
  void authenticate(std::string_view who, std::string_view password, Authenticated done,
                    std::string& out);
  /// Becomes the user that something else has proven, as a certificate. False: there is no such
  /// user, or it is off; then nothing has changed.
  bool authenticate_as(const std::string& who);
  void forget_user();  ///< is again who a new connection is
  const SessionUser& user() const { return user_; }
  /// Why the user may not do this, as the text of an error, after a note in ACL LOG; empty: it may.
  std::string refusal_of(const CommandSpec& spec, const Arguments& args, const char* context);
  /// For MULTI and WATCH: EXEC refuses if the user's rights are others by then.
  void begin_queue();

  std::uint64_t id() const { return id_; }
  const std::string& address() const { return address_; }
  const Context& context() const { return context_; }
  /// Of the command that runs: that of its keys, or the one that was selected.
  const ServedGroup& group() const { return *group_; }
  /// For the commands without keys from here on.
  void select_group(const ServedGroup& group) { selected_ = group_ = &group; }
  /// Finds group(), also for a command that another one carries. The text of an error, or empty.
  std::string find_group(const CommandSpec& spec, const Arguments& args);
  bool in_selected_group() const { return group_ == selected_; }
  /// Behind find_group(): to the group that gave a session this id, and knows what was executed in
  /// it, if the slot has moved there or from there. False: it has not, or cannot_tell_group().
  bool go_to_session(std::uint64_t id);
  bool cannot_tell_group() const { return moves_seen_ == false; }
  bool at_home() const { return group_ == &context_.groups.home(); }  ///< group() has the users
  const kv::Users& users() const { return context_.groups.home().store.users(); }
  Multi& multi() { return multi_; }
  Protocol protocol = Protocol::resp2;
  std::string name;
  CommandTrace trace;
  bool tls = false;              ///< the connection
  std::string certificate_user;  ///< in the client's certificate, which is valid; empty: none
  void set_reply_wish(ReplyWish wish);  ///< for replies from that of the command at hand on

 private:
  std::string away_text(std::optional<std::uint32_t> slot) const;
  bool has_room() const;
  bool may_run(CommandEffect effect) const;
  void run_one(const CommandSpec* spec, const Arguments& args);
  void dispatch(const CommandSpec* spec, const Arguments& args, std::string& out);
  /// Whether a command has to wait for the newest users; then they are asked for.
  bool must_learn_users(const CommandSpec& spec, const Arguments& args);
  /// Whether a command has to wait until its slot, which is on its way, is somewhere, or as below.
  bool must_wait_for_slot(const CommandSpec& spec, const Arguments& args);
  bool is_behind_elsewhere(std::uint32_t slot) const;
  /// Whether a command of a session, or with a lease, has to wait for what its group has now.
  bool must_see_moves(const CommandSpec& spec, const Arguments& args);
  /// A command whose slot was not in its group goes where it is then. The place has what it needs.
  void wait_for_slot(std::uint64_t number);
  void go_on(std::uint64_t number, bool open);
  std::uint64_t newest_users() const;  ///< ServerState::newest_users()
  void look_up_user();
  bool may_still_listen() const;
  /// Refuses a command that the user may not run.
  bool forbids(const CommandSpec& spec, const Arguments& args, std::string& out);
  /// Refuses a read whose rights were looked at by the users `seen`, which become the newest ones.
  bool forbids_since(std::uint64_t& seen, const CommandSpec& spec, const Arguments& args,
                     std::string& out);
  void become(const std::shared_ptr<const Rights>& rights, StoredPassword password);
  void finish_check(std::uint64_t number, const std::string& who, const StoredPassword& password,
                    const std::shared_ptr<const Rights>& rights, const Authenticated& done);
  /// Behind MULTI. The text of an error, or empty.
  std::string queue(const CommandSpec& spec, const Arguments& args);
  /// Warns in the log of a time to live that the operator should reconsider.
  void warn_of_ttl(const kv::GrantLease& grant) const;
  void count_refusal();
  void end_http();
  void end_tls();
  void write(const CommandSpec& spec, const Arguments& args, std::string& out);
  std::uint64_t take_place(PlaceKind kind, std::size_t bytes);
  Place& place(std::uint64_t number);
  void fill(std::uint64_t number, std::string reply);
  /// Moves every reply that is ready from the front of the line to the output.
  void flush_line();
  /// Makes the read at the front of the line, which is long, on the thread for such things.
  void read_in_background();
  /// The reply of one group; the last one fills the place.
  void take_part(std::uint64_t number, std::vector<std::string> words, std::string reply);
  void note_slow(const CommandSpec* spec, std::string_view key, std::chrono::nanoseconds took);
  bool read_keys_fit(const CommandSpec& spec, const Arguments& args, std::size_t& bytes,
                     std::string& out);
  /// Judges it, counts it, and notes in `last_read_` why.
  ReadRoute judge_read(const CommandSpec& spec, const ReadPolicy& policy);
  ReadRoute judge_lease_read(bool in_order);
  void begin_span(const CommandSpec* spec);  ///< trace.span, if it is to have one
  void end_span(const replica::SpanPointer& span, std::string_view reply);
  void note_read_span(ReadRoute route);
  void note_justified(const ReadBatch& batch, const ReadNote& note);
  void enter(std::uint64_t number, ReadRoute route);  ///< the place of a read that goes this way
  void ask_node(std::uint64_t number, const ReadPolicy& policy);
  /// `stay`: as in Place. False, and nothing is appended: `may_wait`, and the slot did not stay.
  bool answer(const CommandSpec& spec, const Arguments& args, std::uint64_t stay, bool may_wait,
              std::string& out);
  /// A part of a long WATCH. False: there are more.
  bool watch_some(Place& front, std::string& out);
  void submit_reads();
  replica::ReadCompletion read_completion(ReadBatch batch);
  void finish_reads(const ReadBatch& batch, const replica::ReadResult& result);
  void submit_write(std::uint64_t number, Bytes command, bool repeatable);
  void finish_write(std::uint64_t number, const replica::ProposeResult& result);
  bool may_run_while_listening(const CommandSpec& spec) const;
  Listening& begin_listening(bool subscribe);
  /// Appends what is new, within this turn and the output's limit.
  void follow_slots();
  void tell_events();
  EventHub& hub(const Ear& ear) const;
  bool tell_events(Ear& ear);
  bool tell(Ear& ear, const kv::Revision& revision);
  std::size_t notify(Ear& ear, const kv::Revision& revision);
  void tell_of_loss(Ear& ear);
  void tell_position(std::string_view word, std::uint64_t revision);

  Context context_;
  const ServedGroup* selected_ = &context_.groups.home();
  const ServedGroup* group_ = selected_;
  std::optional<std::uint32_t> slot_;  ///< of the command that runs, if it may wait for it
  std::uint64_t id_;
  std::string address_;
  std::chrono::nanoseconds opened_ = coarse_now();
  ReadPolicy policy_;
  SessionUser user_;
  std::function<void()> on_progress_;
  RequestParser parser_;
  std::string output_;
  std::string late_reply_;  ///< of a command that is answered at once while an earlier one waits
  Multi multi_;
  std::unique_ptr<Listening> listening_;
  std::deque<Place> line_;
  std::uint64_t first_place_ = 0;  ///< number of line_.front()
  std::size_t reads_under_way_ = 0, writes_under_way_ = 0, bytes_under_way_ = 0;
  std::uint64_t routes_ = 0;  ///< SlotRoutes::version(), when no write was under way
  /// Reads of this process() call that the node has to justify, all in one mode: one read index
  /// that is taken later serves them all.
  ReadBatch asking_;
  /// Those that are valid under the lease, but wait for apply to reach `waiting_index_`.
  ReadBatch waiting_;
  raft::Index waiting_index_;
  ReadNote last_read_;
  const CommandSpec* running_ = nullptr;  ///< with running_args_: for take_place()
  const Arguments* running_args_ = nullptr;
  std::chrono::nanoseconds coarse_{0};  ///< the coarse clock, a command ago at most
  ReplyWish reply_wish_ = ReplyWish::all;
  std::size_t work_ = 0;           ///< of this turn
  std::size_t good_in_a_row_ = 0;  ///< commands
  bool turn_over_ = false, asked_ = false, stalled_ = false, closing_ = false;
  bool waits_for_slot_ = false;
  // Of the command that runs.
  bool silent_ = false;             ///< it is not to be answered
  bool deferred_ = false;           ///< it has taken a place
  bool slot_waited_ = false;        ///< it has waited for its slot, in vain
  std::optional<bool> moves_seen_;  ///< whether what the named group has was learned
};

}  // namespace leasehold::server
