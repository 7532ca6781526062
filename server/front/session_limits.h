// What one connection may have outstanding, and how much one turn of it does.
#pragma once

#include <cstddef>

namespace leasehold::server {

/// Replies of one connection that may be outstanding, by number and by bytes of their commands. At
/// the limit the session takes no further request until some are answered.
inline constexpr std::size_t kInFlightMax = 1024;
inline constexpr std::size_t kInFlightBytesMax = 32U << 20U;
/// What one process() call does at most before others have their turn: in words of commands, which
/// is close to what they cost; large replies add to it. A command in which it ends is finished.
inline constexpr std::size_t kTurnWork = 128;
/// A connection is proven after this many commands in a row that were neither refused nor long.
inline constexpr std::size_t kProvingCommands = 16;
/// Reply bytes that wait for the client to read them. At the limit the session takes no further
/// request.
inline constexpr std::size_t kOutputBytesMax = 1U << 20U;

/// Bytes of replies, and steps of patterns, that cost about as much as a word of a command.
inline constexpr std::size_t kReplyBytesPerWord = 8192;
inline constexpr std::size_t kPatternStepsPerWord = 4096;

}  // namespace leasehold::server
