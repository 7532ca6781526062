#include <leasehold/bench/load/etcd.pb.h>
#include <leasehold/bench/load/etcd_talk.h>
#include <leasehold/bench/workload.h>

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr const char* kRange = "/etcdserverpb.KV/Range";
constexpr const char* kPut = "/etcdserverpb.KV/Put";
constexpr const char* kStatus = "/etcdserverpb.Maintenance/Status";
/// A message has a byte that says whether it is compressed, and four bytes of its length.
constexpr std::size_t kPrefixBytes = 5;
constexpr std::size_t kFrameHeaderBytes = 9;
/// So much may arrive before the server has to wait for us. Never less than one large value.
constexpr std::int32_t kWindowBytes = 16 << 20;
/// Of one reply: a scan of a hundred of the largest values.
constexpr std::size_t kReplyBytesMax = std::size_t{128} << 20U;
constexpr std::size_t kMessageBytesMax = 256;

/// By their numbers, as gRPC names them.
constexpr std::array<const char*, 17> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT", "DEADLINE",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "EXHAUSTED",        "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",         "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

/// One call under way.
struct EtcdCall {
  std::uint64_t number = 0;
  const char* path = kRange;
  std::string output;
  std::size_t output_at = 0;
  std::string input;
  std::string http_status;
  std::string code;  ///< grpc-status; empty: none came
  std::string message;
  bool grpc = false;  ///< the reply says that it is one
};

struct EtcdReply {
  std::uint64_t number = 0;
  ReplyView::Kind kind = ReplyView::Kind::value;
  std::string text;
};

EtcdReply error_reply(const EtcdCall& call, std::string text) {
  return {call.number, ReplyView::Kind::error, std::move(text)};
}

template <class Message>
std::string framed(const Message& message) {
  std::string bytes(kPrefixBytes, '\0');
  message.AppendToString(&bytes);
  const std::size_t length = bytes.size() - kPrefixBytes;
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[1 + i] = static_cast<char>(length >> (24 - 8 * i) & 0xffU);
  }
  return bytes;
}

/// What stands behind the prefix of the only message. Nothing: it is not one whole message.
std::optional<std::string_view> unframed(std::string_view bytes) {
  if (bytes.size() < kPrefixBytes || bytes[0] != 0) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i)
    length = length << 8U | static_cast<unsigned char>(bytes[1 + i]);
  if (bytes.size() != kPrefixBytes + length) return std::nullopt;
  return bytes.substr(kPrefixBytes);
}

/// Without %-signs: people read it, and nobody decodes it.
std::string plain_message(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size() && out.size() < kMessageBytesMax; ++i) {
    unsigned code = 0;
    const char* const end = text.data() + std::min(i + 3, text.size());
    const bool coded = text[i] == '%' && i + 2 < text.size() &&
                       std::from_chars(text.data() + i + 1, end, code, 16).ptr == end;
    out += coded ? static_cast<char>(code) : text[i];
    if (coded) i += 2;
    if (out.back() < ' ') out.back() = ' ';
  }
  return out;
}

EtcdReply finished(const EtcdCall& call) {
  if (call.http_status != "200") {
    return error_reply(call, fmt::format("HTTP_{} no call of gRPC", call.http_status));
  }
  if (!call.grpc) return error_reply(call, "NOT_GRPC the reply is of another kind");
  if (call.code.empty()) return error_reply(call, "NO_STATUS the reply ended without one");
  std::size_t code = kCodes.size();
  const char* const end = call.code.data() + call.code.size();
  const auto read = std::from_chars(call.code.data(), end, code);
  if (read.ptr != end || code >= kCodes.size()) return error_reply(call, "MALFORMED status");
  if (code != 0) {
    return error_reply(call, fmt::format("{} {}", kCodes.at(code), plain_message(call.message)));
  }
  const auto body = unframed(call.input);
  if (!body) return error_reply(call, "MALFORMED message");
  EtcdReply reply{call.number, ReplyView::Kind::value, ""};
  if (call.path == kStatus) reply.text = *body;
  if (call.path != kRange) return reply;
  etcd::RangeResponse found;
  const bool good = found.ParseFromArray(body->data(), static_cast<int>(body->size()));
  if (!good) return error_reply(call, "MALFORMED message");
  if (found.count() == 0) reply.kind = ReplyView::Kind::null;
  return reply;
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  // The library copies them.
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

struct EtcdTalk::Session {
  nghttp2_session* session = nullptr;
  std::string authority;
  bool serializable = false;
  bool ending = false;
  std::string first;   ///< the first bytes that came: they show who else this is
  std::string output;  ///< what is to be sent
  std::unordered_map<std::int32_t, std::unique_ptr<EtcdCall>> calls;
  std::vector<EtcdReply> replies;  ///< complete, and not yet told

  ~Session() { nghttp2_session_del(session); }

  static nghttp2_session_callbacks* make_callbacks();
  void submit(std::unique_ptr<EtcdCall> call);
  void close(std::int32_t stream, std::uint32_t error);
  void make_output();
  bool is_alien() const;
  EtcdCall* call_of(std::int32_t stream) {
    const auto found = calls.find(stream);
    return found == calls.end() ? nullptr : found->second.get();
  }
  /// Why the bytes are no reply of etcd, as far as one can see.
  std::string suspicion() const;
};

void EtcdTalk::Session::submit(std::unique_ptr<EtcdCall> call) {
  const std::array<nghttp2_nv, 6> headers = {
      header(":method", "POST"),   header(":scheme", "http"),
      header(":path", call->path), header(":authority", authority),
      header("te", "trailers"),    header("content-type", "application/grpc")};
  nghttp2_data_provider body{};
  body.source.ptr = call.get();
  body.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t room,
                          std::uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
    EtcdCall& one = *static_cast<EtcdCall*>(source->ptr);
    const std::size_t bytes = std::min(room, one.output.size() - one.output_at);
    std::memcpy(into, one.output.data() + one.output_at, bytes);
    one.output_at += bytes;
    if (one.output_at == one.output.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(bytes);
  };
  const std::int32_t stream =
      nghttp2_submit_request(session, nullptr, headers.data(), headers.size(), &body, nullptr);
  if (stream < 0) {
    replies.push_back(error_reply(*call, "RESET the connection has no more streams"));
    ending = true;
    return;
  }
  calls.emplace(stream, std::move(call));
}

void EtcdTalk::Session::close(std::int32_t stream, std::uint32_t error) {
  const auto found = calls.find(stream);
  if (found == calls.end()) return;
  const EtcdCall& call = *found->second;
  // A server that answered before it had read everything may reset the rest.
  const bool whole = error == NGHTTP2_NO_ERROR || (!call.code.empty() && call.code != "0");
  replies.push_back(
      whole ? finished(call)
            : error_reply(call, fmt::format("RESET {}", nghttp2_http2_strerror(error))));
  calls.erase(found);
}

void EtcdTalk::Session::make_output() {
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session, &bytes);
    if (size <= 0) return;
    output.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

/// A server's first frame is its settings. The library would wait for all of what looks like a
/// frame of some megabytes.
bool EtcdTalk::Session::is_alien() const {
  return first.size() >= kFrameHeaderBytes && first[3] != NGHTTP2_SETTINGS;
}

std::string EtcdTalk::Session::suspicion() const {
  if (first.rfind("HTTP/1", 0) == 0) return "the server speaks HTTP/1, not gRPC";
  if (!first.empty() && first[0] == '\x15') return "the server wants TLS";
  if (!first.empty() && (first[0] == '-' || first[0] == '+')) {
    return "the server speaks the protocol of Redis: --servers reaches it";
  }
  return "malformed HTTP/2";
}

nghttp2_session_callbacks* EtcdTalk::Session::make_callbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                    std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                    std::uint8_t, void* data) {
        EtcdCall* const call = static_cast<Session*>(data)->call_of(frame->hd.stream_id);
        if (call == nullptr) return 0;
        const std::string_view key(reinterpret_cast<const char*>(name), name_bytes);
        const std::string_view text(reinterpret_cast<const char*>(value), value_bytes);
        if (key == ":status") call->http_status = text;
        if (key == "grpc-status") call->code = text;
        if (key == "grpc-message") call->message = text;
        if (key == "content-type") call->grpc = text.rfind("application/grpc", 0) == 0;
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session* session, std::uint8_t, std::int32_t stream,
                    const std::uint8_t* bytes, std::size_t size, void* data) {
        EtcdCall* const call = static_cast<Session*>(data)->call_of(stream);
        if (call == nullptr) return 0;
        if (call->input.size() + size > kReplyBytesMax) {
          return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
        }
        call->input.append(reinterpret_cast<const char*>(bytes), size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* data) {
        if (frame->hd.type == NGHTTP2_GOAWAY) static_cast<Session*>(data)->ending = true;
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, std::int32_t stream, std::uint32_t error, void* data) {
        static_cast<Session*>(data)->close(stream, error);
        return 0;
      });
  // A request that waited for its turn when the server said that it takes no more.
  nghttp2_session_callbacks_set_on_frame_not_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, int, void* data) {
        if (frame->hd.type == NGHTTP2_HEADERS) {
          static_cast<Session*>(data)->close(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        }
        return 0;
      });
  return callbacks;
}

EtcdTalk::EtcdTalk(std::string authority, bool serializable) : session_(new Session) {
  Session& self = *session_;
  self.authority = std::move(authority);
  self.serializable = serializable;
  nghttp2_session_callbacks* const callbacks = Session::make_callbacks();
  nghttp2_session_client_new(&self.session, callbacks, session_.get());
  nghttp2_session_callbacks_del(callbacks);
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(kWindowBytes)},
  }};
  nghttp2_submit_settings(self.session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(self.session, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
}

EtcdTalk::~EtcdTalk() = default;

void EtcdTalk::ask(const Request& request, std::uint64_t number, std::string&) {
  auto call = std::make_unique<EtcdCall>();
  call->number = number;
  if (request.kind == OperationKind::update) {
    etcd::PutRequest put;
    put.set_key(key_name(request.key));
    put.set_value(request.value.data(), request.value.size());
    call->path = kPut;
    call->output = framed(put);
  } else {
    etcd::RangeRequest range;
    range.set_key(key_name(request.key));
    range.set_serializable(session_->serializable);
    if (request.kind == OperationKind::scan) {
      range.set_range_end(key_name(request.key + request.count));
      range.set_limit(static_cast<std::int64_t>(request.count));
    }
    call->output = framed(range);
  }
  session_->submit(std::move(call));
}

void EtcdTalk::ask_status(std::uint64_t number) {
  auto call = std::make_unique<EtcdCall>();
  call->number = number;
  call->path = kStatus;
  call->output = framed(etcd::StatusRequest());
  session_->submit(std::move(call));
}

void EtcdTalk::take_output(std::string& output) {
  session_->make_output();
  output += session_->output;
  session_->output.clear();
}

Result<void> EtcdTalk::arrived(std::string_view bytes, Replies& replies) {
  Session& self = *session_;
  if (self.first.size() < kFrameHeaderBytes) self.first.append(bytes.substr(0, kFrameHeaderBytes));
  if (self.is_alien()) return Error{ErrorCode::malformed, self.suspicion()};
  const ssize_t taken = nghttp2_session_mem_recv(
      self.session, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  // After an error of the connection it says goodbye, and then wants nothing more.
  self.make_output();
  // The caller hears of complete replies here, not inside the library: it may send more meanwhile.
  for (const EtcdReply& reply : std::exchange(self.replies, {})) {
    ReplyView view;
    view.kind = reply.kind;
    view.text = reply.text;
    if (!replies.replied(reply.number, view)) {
      return Error{ErrorCode::malformed, "reply without a request"};
    }
  }
  if (taken >= 0 && nghttp2_session_want_read(self.session) != 0) return {};
  if (taken >= 0 && self.ending) return {};
  return Error{ErrorCode::malformed, self.suspicion()};
}

bool EtcdTalk::ending() const {
  return session_->ending;
}

}  // namespace leasehold::bench
