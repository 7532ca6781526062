// Requests of one fixed size and their replies: what the load client sends and the floors count.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/base/result.h>
#include <leasehold/bench/histogram.h>
#include <leasehold/bench/recorder.h>
#include <leasehold/bench/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::bench {

/// What one request does, in the Redis protocol. All requests of one kind have the same size, and
/// so have all successful replies: a floor can answer them by counting bytes.
enum class Operation : std::uint8_t { get, set, renew };

/// Keys are numbered; a key has one value, made from its number, so that it can be checked. A
/// renewal's keys are leases, numbered too.
struct Workload {
  Operation operation = Operation::get;
  std::uint64_t keys = 1000;
  std::size_t value_bytes = 256;
  std::uint64_t ttl_ms = 10'000;  ///< of every lease: what a renewal is answered
  std::uint64_t ids = 1;          ///< leases in one renewal: that of its key and those behind it
};

std::string key_name(std::uint64_t key);
std::string key_value(std::uint64_t key, std::size_t value_bytes);
/// The id under which lease `lease` was granted: always ten digits, so that requests have one size.
std::uint64_t lease_id(std::uint64_t lease);
std::string request_of(const Workload& workload, std::uint64_t key);
/// Puts `front` at the beginning of the value of a set's request.
void put_front(const Recorder::Front& front, const Workload& workload, std::string& request);
/// Begins to record the get or set of `request`, if `key` is judged: a set gets the value that is
/// recorded.
Recorder::Place begin_record(Recorder* recorder, const Workload& workload, std::uint64_t key,
                             std::string& request);
/// The value in the reply to a get; none: there is no such key, or the reply is an error.
std::optional<std::string_view> value_in(std::string_view reply);
/// Tells `recorder` what the reply says of a get or a set.
void record_reply(Recorder& recorder, Recorder::Place place, Operation operation,
                  std::string_view reply, std::uint64_t now);
/// The reply to a get of a key that is there, to a set, or to a renewal of leases that are there.
std::string reply_of(const Workload& workload, std::uint64_t key);
std::size_t request_bytes(const Workload& workload);
std::size_t reply_bytes(const Workload& workload);
/// Any command, from its words separated by single spaces.
std::string command_of(std::string_view words);
/// The same of words that may have spaces.
std::string command_of_words(const std::vector<std::string>& words);

/// The length of the reply at the front of `bytes`, which is `expected_bytes`, or one line if it is
/// an error or a null, or an array of such lines, however long. Zero if it is not complete yet.
std::size_t reply_length(std::string_view bytes, std::size_t expected_bytes);
/// Reads one reply, as long as reply_length() says. Blocks. `ahead` keeps bytes of later replies
/// between calls. Errors: io, stopped.
Result<std::string> read_reply(const Descriptor& socket, std::size_t expected_bytes,
                               std::string& ahead);

/// What a run of requests showed.
struct LoopResult {
  Histogram latency;  ///< nanoseconds
  std::uint64_t failures = 0;
  std::string first_failure;  ///< the reply, for people
  std::uint64_t elapsed_ns = 0;
};

/// One request at a time on one connection (closed loop), keys drawn uniformly. The first `warmup`
/// requests are not measured. `recorder`: of gets and sets; may be null. Errors: io, stopped.
Result<LoopResult> closed_loop(const Descriptor& socket, const Workload& workload,
                               std::uint64_t operations, std::uint64_t warmup, Random& random,
                               Recorder* recorder = nullptr);

/// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t monotonic_ns();

}  // namespace leasehold::bench
