// How two ends of TLS prove who they are, with somebody between them: a hostile node or client, or
// one that changes, drops, repeats, cuts and makes records. And what is judged behind that: hellos
// of nodes, files of group keys. The first byte chooses.
//
// Both ends are real, over pairs of sockets; their records pass through the fuzzer's hands.
#include <leasehold/net/handshake.h>
#include <leasehold/net/peer_guard.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>
#include <leasehold/tests/fuzz/meetings.h>
#include <leasehold/tests/fuzz/memory_file.h>
#include <leasehold/tls/stream.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::fuzz {
namespace {

using tls::SessionSlot;
using tls::Stream;
using State = Stream::State;

/// What came from one end and has not been handed on.
class Wire {
 public:
  explicit Wire(int socket) : socket_(socket) {}

  void collect() {
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      waiting_.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  /// The next whole record, or what there is of it.
  std::string take() {
    std::size_t size = waiting_.size();
    if (size >= 5) {
      const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(waiting_[at]); };
      size = std::min<std::size_t>(size, 5U + 256U * byte(3) + byte(4));
    }
    std::string record = waiting_.substr(0, size);
    waiting_.erase(0, size);
    if (!record.empty() && seen_.size() < 32) seen_.push_back(record);
    return record;
  }
  std::string take_all() { return std::exchange(waiting_, {}); }
  std::string take(std::size_t size) {
    std::string part = waiting_.substr(0, size);
    waiting_.erase(0, part.size());
    return part;
  }
  bool empty() const { return waiting_.empty(); }
  /// One that was taken before; empty: there is none.
  std::string seen(std::size_t number) const {
    return seen_.empty() ? std::string() : seen_[number % seen_.size()];
  }
  /// To the end whose records these are.
  void give(const std::string& bytes) const {
    // A socket that is full loses them: that is a change, too.
    if (!bytes.empty()) ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void close() const { ::shutdown(socket_, SHUT_RDWR); }

 private:
  int socket_;
  std::string waiting_;
  std::vector<std::string> seen_;
};

struct Sockets {
  Sockets() {
    constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    LEASEHOLD_ASSERT(::socketpair(AF_UNIX, kKind, 0, ends.data()) == 0);
  }
  ~Sockets() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  std::array<int, 2> ends{-1, -1};
};

/// One end, and what it was given to send and has read.
class End {
 public:
  End(const tls::ContextPtr& context, Stream::Side side, SessionSlot* slot)
      : wire(sockets_.ends[1]), stream(context, side, sockets_.ends[0], slot) {}

  void step() {
    if (!stream.established()) {
      note(stream.handshake());
      return;
    }
    std::array<char, 512> bytes;
    for (;;) {
      const Stream::Step step = stream.read(bytes.data(), bytes.size());
      note(step);
      if (step.state != State::done) return;
      LEASEHOLD_ASSERT(step.bytes > 0);
      got.append(bytes.data(), step.bytes);
    }
  }
  void note(const Stream::Step& step) {
    const bool over = step.state == State::failed || step.state == State::ended;
    LEASEHOLD_ASSERT(step.state == State::done || step.bytes == 0);
    LEASEHOLD_ASSERT(over || !over_);
    LEASEHOLD_ASSERT(step.state != State::failed || !stream.problem().empty());
    // Who waits for the socket would turn in circles otherwise.
    LEASEHOLD_ASSERT(step.state == State::done || !stream.established() || !stream.has_pending());
    over_ = over;
  }
  void write(std::size_t size) {
    if (!stream.established() || over_ || size == 0) return;
    // Never twice the same.
    std::string text;
    while (text.size() < size) text += std::to_string(sent.size() + text.size()) + " ";
    const Stream::Step step = stream.write(text);
    sent += text.substr(0, step.bytes);
  }
  bool over() const { return over_; }

 private:
  bool over_ = false;
  Sockets sockets_;

 public:
  Wire wire;
  Stream stream;
  std::string sent;
  std::string got;
};

/// Two ends, and the fuzzer between them.
class Conversation {
 public:
  Conversation(const Meeting& meeting, SessionSlot* slot)
      : meeting_(meeting),
        dials_(meeting.dials, Stream::Side::dialled, slot),
        accepts_(meeting.accepts, Stream::Side::accepted, nullptr) {
    step();
  }

  /// Nobody between them.
  void run_untouched() {
    for (int turn = 0; turn < 16; ++turn) {
      accepts_.wire.give(dials_.wire.take_all());
      dials_.wire.give(accepts_.wire.take_all());
      step();
      if (dials_.wire.empty() && accepts_.wire.empty()) break;
    }
  }

  void run(Input& in) {
    for (int turn = 0; turn < 48 && !in.empty(); ++turn) {
      act(in);
      step();
    }
    if (touched_) return;
    run_untouched();
    dials_.write(100);
    accepts_.write(100);
    step();
    run_untouched();
    LEASEHOLD_ASSERT(accepts_.stream.established() == meeting_.taken);
    if (!meeting_.taken) return;
    LEASEHOLD_ASSERT(dials_.stream.established() && !dials_.over() && !accepts_.over());
    LEASEHOLD_ASSERT(accepts_.got == dials_.sent && dials_.got == accepts_.sent);
  }

  const Stream& accepts() const { return accepts_.stream; }

 private:
  void step() {
    dials_.step();
    accepts_.step();
    dials_.wire.collect();
    accepts_.wire.collect();
    // Whatever was done to the records: nothing else is read than what was sent, and nobody else is
    // believed.
    LEASEHOLD_ASSERT(dials_.sent.compare(0, accepts_.got.size(), accepts_.got) == 0);
    LEASEHOLD_ASSERT(accepts_.sent.compare(0, dials_.got.size(), dials_.got) == 0);
    if (!accepts_.stream.established() || std::exchange(judged_, true)) return;
    LEASEHOLD_ASSERT(meeting_.taken);
    LEASEHOLD_ASSERT(accepts_.stream.peer_key() == meeting_.key);
    LEASEHOLD_ASSERT(accepts_.stream.peer_name() == meeting_.name);
    LEASEHOLD_ASSERT(accepts_.stream.believed_by(*meeting_.accepts));
  }

  void act(Input& in) {
    const unsigned chosen = in.byte();
    End& from = chosen < 128 ? dials_ : accepts_;
    End& to = chosen < 128 ? accepts_ : dials_;
    const unsigned action = chosen % 16;
    // Those that leave the records as they are.
    if (action < 4) return to.wire.give(from.wire.take());
    if (action < 6) return to.wire.give(from.wire.take(in.byte()));
    if (action == 6) return to.wire.give(from.wire.take_all());
    if (action == 7) return from.write(in.byte());
    touched_ = true;
    change(action, from, to, in);
  }

  static void change(unsigned action, End& from, End& to, Input& in) {
    std::string record;
    switch (action) {
      case 8:
      case 9:
      case 10: {
        record = from.wire.take();
        const std::size_t at = in.byte() + 256U * (in.byte() % 8U);
        if (!record.empty()) {
          char& c = record[at % record.size()];
          c = static_cast<char>(c ^ (1 + in.byte() % 255));
        }
        break;
      }
      case 11: from.wire.take(); return;
      case 12:
        record = from.wire.take();
        record += record;
        break;
      case 13: record = from.wire.seen(in.byte()); break;
      case 14: record = in.bytes(in.byte()); break;
      default:
        switch (in.byte() % 4) {
          case 0: from.wire.close(); return;
          case 1: record = to.wire.take(); break;
          case 2:
            record = from.wire.take(in.byte());
            from.wire.take();
            break;
          default: {
            const std::string first = from.wire.take();
            record = from.wire.take() + first;
          }
        }
    }
    to.wire.give(record);
  }

  const Meeting& meeting_;
  End dials_;
  End accepts_;
  bool touched_ = false;
  bool judged_ = false;
};

void take_conversation(Input& in) {
  const Meeting& meeting = meeting_of(in.byte());
  SessionSlot slot;
  if (in.byte() % 4 == 0) {
    // The second one continues the session of the first.
    Conversation first(meeting, &slot);
    first.run_untouched();
  }
  Conversation conversation(meeting, &slot);
  conversation.run(in);
}

/// Bytes from nobody in particular.
void take_bytes(Input& in) {
  const Meeting& meeting = meeting_of(in.byte());
  const bool dials = in.byte() % 2 == 0;
  End end(dials ? meeting.dials : meeting.accepts,
          dials ? Stream::Side::dialled : Stream::Side::accepted, nullptr);
  while (!in.empty()) {
    end.wire.give(std::string(in.bytes(1U + in.byte())));
    end.step();
    end.wire.collect();
    end.wire.take_all();
  }
  LEASEHOLD_ASSERT(!end.stream.established());
}

/// A node that has proved itself by its certificate, or by the group's key.
class Proven {
 public:
  explicit Proven(unsigned meeting) : conversation_(meeting_of(meeting), nullptr) {
    conversation_.run_untouched();
    LEASEHOLD_ASSERT(conversation_.accepts().established());
  }
  const Stream& stream() const { return conversation_.accepts(); }

 private:
  Conversation conversation_;
};

wire::Hello take_hello(Input& in) {
  wire::Hello hello;
  hello.versions = {1U + in.byte() % 4U, 1U + in.byte() % 8U};
  hello.cluster_id = in.byte() % 4;
  hello.from = raft::NodeId(in.byte() % 4);
  hello.to = raft::NodeId(in.byte() % 4);
  hello.uuid = {in.byte() % 2U, in.byte() % 3U};
  hello.incarnation = raft::Incarnation(in.byte() % 4);
  hello.process = in.byte() % 3;
  hello.purpose = static_cast<wire::Purpose>(in.byte() % 3);
  hello.cluster = in.byte() % 3 == 0 ? std::string(in.bytes(in.byte() % 8)) : kCluster;
  return hello;
}

/// As the other side reads it.
std::optional<wire::Hello> sent(const wire::Hello& hello) {
  wire::SendBuffer out;
  wire::encode_hello(hello, out);
  std::string bytes;
  while (!out.empty()) {
    std::string_view view;
    LEASEHOLD_ASSERT(out.front(&view, 1) == 1);
    bytes += view;
    out.consume(view.size());
  }
  wire::FrameReader reader(wire::kHandshakeFrameBytesMax);
  reader.feed(bytes);
  const auto frame = reader.next();
  LEASEHOLD_ASSERT(frame.ok() && frame.value());
  const auto decoded = wire::decode_hello(*frame.value());
  if (!accepted(decoded)) return std::nullopt;
  return decoded.value();
}

bool fits(const std::optional<wire::Refusal>& refusal) {
  LEASEHOLD_ASSERT(!refusal || !refusal->reason.empty());
  return !refusal;
}

/// Several hellos, one after the other, of nodes that have proved themselves.
void take_hellos(Input& in) {
  static const Proven by_certificate(0);
  static const Proven by_key(1);
  const net::PeerGuard& guard = node_guard();
  wire::Hello mine = take_hello(in);
  mine.versions = {};
  net::PeerHistory history;
  while (!in.empty()) {
    const bool certificate = in.byte() % 2 == 0;
    const Stream& stream = certificate ? by_certificate.stream() : by_key.stream();
    const auto theirs = sent(take_hello(in));
    if (!theirs) continue;
    const bool proved = fits(guard.judge(&stream, *theirs, kCluster));
    LEASEHOLD_ASSERT(proved == (!certificate || theirs->from.value() == kNode));
    LEASEHOLD_ASSERT(!certificate || !fits(guard.judge(&stream, *theirs, "another")));
    if (fits(net::judge_introduction(mine, *theirs))) {
      LEASEHOLD_ASSERT(theirs->from != mine.from);
      LEASEHOLD_ASSERT(mine.cluster_id == theirs->cluster_id || mine.cluster_id == 0 ||
                       theirs->cluster_id == 0);
    }
    if (theirs->purpose == wire::Purpose::introduction) continue;
    if (!fits(net::judge_hello(mine, *theirs))) continue;
    LEASEHOLD_ASSERT(theirs->cluster_id == mine.cluster_id && theirs->from != mine.from &&
                     theirs->to == mine.from);
    LEASEHOLD_ASSERT(mine.to == raft::kNobody || mine.to == theirs->from);
    const bool connected = in.byte() % 2 == 0;
    const auto last = history.last();
    if (!fits(history.judge(*theirs, connected))) continue;
    if (last && last->uuid == theirs->uuid) {
      LEASEHOLD_ASSERT(theirs->incarnation >= last->incarnation);
      LEASEHOLD_ASSERT(theirs->incarnation > last->incarnation || theirs->process == last->process);
    }
    LEASEHOLD_ASSERT(!last || last->uuid == theirs->uuid || !connected);
    history.let_in(*theirs);
  }
}

void take_keys(Input& in) {
  static MemoryFile file;
  const auto keys = tls::read_group_keys(file.path_of(in.rest()));
  if (!accepted(keys)) return;
  LEASEHOLD_ASSERT(!keys.value().empty() && keys.value().size() <= tls::kGroupKeysMax);
  for (const tls::GroupKey& key : keys.value()) {
    LEASEHOLD_ASSERT(key.name().size() == 16);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : key.bytes()) {
      text += kDigits[byte / 16];
      text += kDigits[byte % 16];
    }
    const auto again = tls::GroupKey::parse(text);
    LEASEHOLD_ASSERT(again.ok() && again.value().name() == key.name());
    LEASEHOLD_ASSERT(again.value().bytes() == key.bytes());
    LEASEHOLD_ASSERT(text.find(key.name()) == std::string::npos);
  }
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  const unsigned chosen = in.byte();
  switch (chosen % 8) {
    case 0: return take_bytes(in);
    case 1: return take_hellos(in);
    case 2: return take_keys(in);
    default: return take_conversation(in);
  }
}

}  // namespace leasehold::fuzz
