// What a server of etcd says, as bytes that are written here by hand, and a server that says it.
#pragma once

#include <leasehold/bench/socket.h>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::bench {

enum : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindow = 8
};
enum : std::uint8_t { kNoFlags = 0, kEndStream = 1, kAck = 1, kEndHeaders = 4 };
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string big_endian(std::uint64_t number, unsigned bytes) {
  std::string out;
  for (unsigned i = bytes; i > 0; --i) out += static_cast<char>(number >> (8 * (i - 1)) & 0xffU);
  return out;
}

inline std::string frame(std::uint8_t type, unsigned flags, std::uint32_t stream,
                         const std::string& payload) {
  return big_endian(payload.size(), 3) + static_cast<char>(type) + static_cast<char>(flags) +
         big_endian(stream, 4) + payload;
}

using HeaderList = std::vector<std::pair<std::string, std::string>>;

/// Literal, never indexed, not compressed: HPACK's plainest form.
inline std::string header_block(const HeaderList& headers) {
  std::string block;
  for (const auto& [name, value] : headers) {
    block += std::string(1, '\x10') + static_cast<char>(name.size()) + name +
             static_cast<char>(value.size()) + value;
  }
  return block;
}

inline std::string headers_frame(std::uint32_t stream, const HeaderList& headers, bool last) {
  return frame(kHeaders, kEndHeaders | (last ? kEndStream : kNoFlags), stream,
               header_block(headers));
}

inline std::string settings_frame() {
  return frame(kSettings, kNoFlags, 0, "");
}

/// Lets the client send so many bytes of bodies more: on a stream, or on 0, on all together.
inline std::string window_frame(std::uint32_t stream, std::uint32_t bytes) {
  return frame(kWindow, kNoFlags, stream, big_endian(bytes, 4));
}

inline std::string opening(std::uint32_t stream) {
  return headers_frame(stream, {{":status", "200"}, {"content-type", "application/grpc"}}, false);
}

/// With the prefix of gRPC.
inline std::string message_frame(std::uint32_t stream, const std::string& message) {
  return frame(kData, kNoFlags, stream,
               std::string(1, '\0') + big_endian(message.size(), 4) + message);
}

inline std::string closing(std::uint32_t stream, const std::string& code = "0") {
  return headers_frame(stream, {{"grpc-status", code}}, true);
}

inline std::string good_reply(std::uint32_t stream, const std::string& message) {
  return opening(stream) + message_frame(stream, message) + closing(stream);
}

inline std::string error_reply(std::uint32_t stream, const std::string& code,
                               const std::string& text) {
  return headers_frame(stream,
                       {{":status", "200"},
                        {"content-type", "application/grpc"},
                        {"grpc-status", code},
                        {"grpc-message", text}},
                       true);
}

inline std::string go_away(std::uint32_t last_stream) {
  return frame(kGoAway, kNoFlags, 0, big_endian(last_stream, 4) + big_endian(0, 4));
}

// Messages of etcd, field by field.
inline const std::string kOneKey("\x20\x01", 2);  ///< RangeResponse: count = 1
inline const std::string kNoKey;

/// StatusResponse: header.member_id, version, leader; the numbers are below 128.
inline std::string status_message(std::uint8_t member, const std::string& version,
                                  std::uint8_t leader) {
  return std::string("\x0a\x02\x10", 3) + static_cast<char>(member) + "\x12" +
         static_cast<char>(version.size()) + version + "\x20" + static_cast<char>(leader);
}

/// One call that a client made.
struct SeenCall {
  std::uint32_t stream = 0;
  HeaderList headers;
  std::string message;  ///< without the prefix of gRPC

  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return "";
  }
};

/// Takes apart what a client sent on one connection.
class ClientBytes {
 public:
  ClientBytes() { nghttp2_hd_inflate_new(&inflater_); }
  ~ClientBytes() { nghttp2_hd_inflate_del(inflater_); }
  ClientBytes(const ClientBytes&) = delete;
  ClientBytes& operator=(const ClientBytes&) = delete;

  /// The calls that are complete now. Adds what a server has to say to `output`: its settings
  /// first, and that it has seen the client's.
  std::vector<SeenCall> take(std::string_view bytes, std::string& output) {
    input_.append(bytes);
    if (!greeted_) {
      if (input_.size() < kPreface.size()) return {};
      EXPECT_EQ(input_.substr(0, kPreface.size()), kPreface);
      input_.erase(0, kPreface.size());
      greeted_ = true;
      output += settings_frame() + window_frame(0, 1U << 30U);
    }
    std::vector<SeenCall> done;
    while (input_.size() >= 9) {
      const auto at = [this](std::size_t i) { return static_cast<std::uint8_t>(input_[i]); };
      const std::size_t length = at(0) << 16U | at(1) << 8U | at(2);
      if (input_.size() < 9 + length) break;
      const auto stream = static_cast<std::uint32_t>(at(7) << 8U | at(8));
      take_frame(at(3), at(4), stream, input_.substr(9, length), done, output);
      input_.erase(0, 9 + length);
    }
    return done;
  }

 private:
  void take_frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string payload,
                  std::vector<SeenCall>& done, std::string& output) {
    if (type == kSettings && (flags & kAck) == 0) output += frame(kSettings, kAck, 0, "");
    if (type == kHeaders) {
      open_.push_back({stream, inflate(payload), ""});
    }
    if (type != kData) return;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i].stream != stream) continue;
      open_[i].message += payload;
      if ((flags & kEndStream) == 0) return;
      SeenCall call = std::move(open_[i]);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(call.message.substr(0, 5),
                std::string(1, '\0') + big_endian(call.message.size() - 5, 4));
      call.message.erase(0, 5);
      done.push_back(std::move(call));
      return;
    }
  }

  HeaderList inflate(const std::string& block) {
    HeaderList headers;
    const auto* at = reinterpret_cast<const std::uint8_t*>(block.data());
    std::size_t left = block.size();
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
      nghttp2_nv one{};
      flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &one, &flags, at, left, 1);
      if (used < 0) {
        ADD_FAILURE() << "the headers of a client cannot be read";
        return headers;
      }
      at += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      headers.emplace_back(std::string(reinterpret_cast<char*>(one.name), one.namelen),
                           std::string(reinterpret_cast<char*>(one.value), one.valuelen));
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return headers;
  }

  nghttp2_hd_inflater* inflater_ = nullptr;
  bool greeted_ = false;
  std::string input_;
  std::vector<SeenCall> open_;
};

/// Answers each call as a function says, on a thread of its own.
class EtcdServer {
 public:
  /// The frames of the reply to a call. `hang_up` ends the connection behind them.
  using Answer = std::function<std::string(const SeenCall& call, bool& hang_up)>;

  explicit EtcdServer(Answer answer) : answer_(std::move(answer)) {
    auto listener = listen_tcp("127.0.0.1:0");
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~EtcdServer() {
    over_ = true;
    thread_.join();
  }
  const std::string& address() const { return address_; }

 private:
  struct Client {
    Descriptor socket;
    std::unique_ptr<ClientBytes> bytes;
  };

  void serve() {
    while (!over_) {
      std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) polled.push_back({client.socket.get(), POLLIN, 0});
      if (poll(polled.data(), polled.size(), 10) <= 0) continue;
      for (std::size_t i = polled.size() - 1; i > 0; --i) {
        if (polled[i].revents != 0 && !read_from(clients_[i - 1])) {
          clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        }
      }
      if (polled[0].revents == 0) continue;
      auto accepted = accept_tcp(listener_);
      if (accepted)
        clients_.push_back({std::move(accepted).value(), std::make_unique<ClientBytes>()});
    }
  }

  bool read_from(Client& client) {
    std::array<char, 64U << 10U> chunk;
    const auto got = read_some(client.socket, chunk.data(), chunk.size());
    if (!got) return false;
    std::string output;
    bool hang_up = false;
    for (const SeenCall& call : client.bytes->take({chunk.data(), got.value()}, output)) {
      output += answer_(call, hang_up);
    }
    return write_all(client.socket, output).ok() && !hang_up;
  }

  Answer answer_;
  Descriptor listener_;
  std::string address_;
  std::vector<Client> clients_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace leasehold::bench
