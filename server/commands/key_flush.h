// FLUSHALL and FLUSHDB.
#pragma once

#include <leasehold/server/front/session.h>

#include <functional>
#include <string>

namespace leasehold::server {

/// Keys that one command of the log deletes, and bytes of their names.
inline constexpr std::size_t kFlushKeys = 1000;
inline constexpr std::size_t kFlushBytes = std::size_t{1} << 20U;

/// Deletes every key that exists now, of each group that is here, by commands of the log that name
/// the keys. What others write meanwhile may stay or go; a key that is deleted is one that existed.
/// The reads of the store are made on the background thread of `context`.
///
/// `done` gets the reply: OK once all are deleted; an error says whether some were. Any thread
/// calls it, once.
void flush_keys(const Session::Context& context, std::function<void(std::string)> done);

}  // namespace leasehold::server
