// Asks which node answers at an address: two hellos, and the end. Only for use by a node.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/peer_guard.h>
#include <leasehold/net/peer_streams.h>
#include <leasehold/wire/hello.h>

#include <chrono>
#include <functional>
#include <string>

namespace asio {
class io_context;
}

namespace leasehold::net {

struct Introduction {
  std::string address;  ///< host:port of a peer listener
  wire::Hello hello;    ///< what the asking side says; its purpose is `introduction`
  GuardPtr guard = PeerGuard::plain();
  std::string cluster{};  ///< the name that a certificate of the other node has to have
  std::chrono::milliseconds timeout{2000};
  PeerStreams* streams = nullptr;  ///< makes the stream; null: TCP does
};

/// Dials, says the hello, and completes with the answer's, once, on the thread that runs `io`;
/// never inside this call. The answer fits the question (judge_introduction). Not completed when
/// `io` is destroyed before. Errors: invalid_argument (the address is not valid, or its host is not
/// known), unavailable (no node answers, or one of a build without introductions, or the node
/// refuses for a reason that may pass), wrong_cluster (the cluster, or another node), in_use (the
/// id), unsupported_format (versions); the message says which node refused and why.
void introduce(asio::io_context& io, Introduction introduction,
               std::function<void(Result<wire::Hello>)> done);

/// The same, and waits.
Result<wire::Hello> introduce_and_wait(Introduction introduction);

}  // namespace leasehold::net
